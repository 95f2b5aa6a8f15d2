import "#app/quick-imports.ts";
import { readVersion } from "#config/read-version.ts";

// Whatever is written may hold addresses and texts of requests: only its owner reads it.
process.umask(0o077);

const [first, ...more] = process.argv.slice(2);

// The commands load the whole service, which takes more than a second of CPU.
if (more.length === 0 && (first === "--version" || first === "-V"))
  process.stdout.write(`${readVersion()}\n`);
else {
  const { runProgram } = await import("#faces/cli/program.ts");
  await runProgram();
}
