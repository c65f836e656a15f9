// Loaded by Node before anything else. A later start of Pi's own entry, however it was found, becomes fake-pi; the first is the
// parent and goes on as it is.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const kit = JSON.parse(fs.readFileSync(path.join(here, "kit.json"), "utf8"));
let entry = process.argv[1];
try {
  entry = fs.realpathSync(entry);
} catch {}
if (entry === kit.real && typeof process.execve === "function") {
  const mine = String(process.pid);
  const lock = path.join(here, "parent.pid");
  let parent = false;
  try {
    fs.writeFileSync(lock, mine, { flag: "wx" });
    parent = true;
  } catch {
    parent = fs.readFileSync(lock, "utf8") === mine;
  }
  if (!parent) process.execve(kit.fake, ["pi", ...process.argv.slice(2)], process.env);
}
