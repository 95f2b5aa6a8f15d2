import { followParent } from "#lib/process.ts";

/** Stands in for the service: says what it is told, and ends with exit code 7 a moment later. */
const print = (text: string) => process.stdout.write(`${text}\n`);

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => print(`signal ${signal}`));
const running = setInterval(() => {}, 1_000);
followParent(
  (reason) => {
    print(`stop: ${reason}`);
    process.exitCode = 7;
    setTimeout(() => clearInterval(running), 200);
  },
  () => print("reload"),
);
print(`ready ${process.pid} ${process.argv.slice(2).join(" ")}`);
if (process.argv.includes("--end")) clearInterval(running);
if (process.argv.includes("--crash")) process.kill(process.pid, "SIGKILL");
