// A Pi extension that delegates through the program `delegate`: one tool, carried out by `delegate mcp` over its standard streams.
// The program is what DELEGATE names, else `delegate` on PATH. It sees to deadlines, the process tree and what a child writes; here
// is only the way there. When Pi goes, however it goes, the program's input ends, and it ends its children.
import { spawn } from "node:child_process";
import readline from "node:readline";

export default function (pi) {
	const waiting = new Map();
	let server, last = 0;

	function start() {
		const program = spawn(process.env.DELEGATE ?? "delegate", ["mcp"], { stdio: ["pipe", "pipe", "ignore"] });
		const gone = new Promise((resolve) => program.once("close", resolve));
		const fail = (message) => {
			server = undefined;
			for (const [id, { settle }] of waiting) waiting.delete(id), settle({ error: { message } });
		};
		program.once("error", (error) => fail(`cannot start the delegator: ${error.message}`));
		program.once("close", () => fail("the delegator has ended"));
		program.stdin.on("error", () => {});
		readline.createInterface({ input: program.stdout }).on("line", (line) => {
			const message = JSON.parse(line);
			if (message.method === "notifications/progress") waiting.get(message.params.progressToken)?.update(message.params.message);
			const call = waiting.get(message.id);
			if (call && !message.method) waiting.delete(message.id), call.settle(message);
		});
		const send = (message) => program.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
		const ask = (method, params, update = () => {}) => {
			const id = ++last;
			const answer = new Promise((settle) => waiting.set(id, { settle, update }));
			send({ id, method, params: { ...params, _meta: { progressToken: id } } });
			return { id, answer };
		};
		const clientInfo = { name: "pi", version: "1" };
		const ready = ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo }).answer.then(() =>
			send({ method: "notifications/initialized" }),
		);
		return { program, gone, send, ask, ready };
	}

	pi.registerTool({
		name: "delegate",
		label: "Delegate",
		description: "Hand a task to a fresh child agent and wait for its answer.",
		parameters: {
			type: "object",
			properties: {
				task: { type: "string", description: "What to do." },
				profile: { type: "string", description: "scout, reviewer, oracle, tester or worker." },
				cwd: { type: "string", description: "Working directory; default: this one." },
				model: { type: "string", description: "Model for this call only." },
			},
			required: ["task", "profile"],
		},
		async execute(_id, params, signal, onUpdate) {
			server ??= start();
			const { ready, ask, send } = server;
			await ready;
			const update = (text) => onUpdate?.({ content: [{ type: "text", text: String(text) }] });
			const { id, answer } = ask("tools/call", { name: "delegate", arguments: params }, update);
			const cancel = () => send({ method: "notifications/cancelled", params: { requestId: id } });
			if (signal?.aborted) cancel();
			else signal?.addEventListener("abort", cancel, { once: true });
			const { result, error } = await answer;
			signal?.removeEventListener("abort", cancel);
			if (error) throw new Error(error.message);
			return { content: result.content, details: { ...result.structuredContent, failed: result.isError === true } };
		},
	});

	// A result that a tool returns cannot say by itself that it is a failure; this hook can.
	pi.on("tool_result", (event) => (event.toolName === "delegate" && event.details?.failed ? { isError: true } : undefined));

	pi.on("session_shutdown", async () => {
		server?.program.stdin.end();
		await server?.gone;
	});
}
