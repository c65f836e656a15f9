// Stands where the parent's own entry stands, so that an extension which starts `process.argv[1]` again meets it.
// The first process to come here is the parent: it becomes the real Pi, in this very process. Every later one is a child that
// was delegated to: it becomes fake-pi, with the same pid, pipes and group. Which is which is told by a file, not by the
// environment, since some delegators scrub that.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = path.dirname(fs.realpathSync(fileURLToPath(import.meta.url)));
const kit = JSON.parse(fs.readFileSync(path.join(here, "kit.json"), "utf8"));
let parent = false;
try {
  fs.writeFileSync(path.join(here, "parent.pid"), String(process.pid), { flag: "wx" });
  parent = true;
} catch {}
if (parent) await import(pathToFileURL(kit.real).href);
else process.execve(kit.fake, ["pi", ...process.argv.slice(2)], process.env);
