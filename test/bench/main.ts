import { Command, InvalidArgumentError } from "commander";
import { judgeIngest } from "./ingest/judge.ts";
import { reportIngest } from "./ingest/report.ts";
import { benchIngest } from "./ingest.ts";

const EXAMPLES = `
Examples:
  npm run bench -- ingest
  npm run -s bench -- ingest --events 2000000 --sessions 4
  npm run -s bench -- ingest --repeats 1 --events 60000 --json

Exit code 1 when a limit is missed. The chain curl | jq | psql needs these three and bash on PATH.`;

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("must be a whole number from 1.");
  return Number(text);
}

interface Flags {
  readonly events: number;
  readonly repeats: number;
  readonly sessions: number;
  readonly json?: true;
}

const ingest = new Command("ingest")
  .description("Speed, bytes and memory of the durable ingest, next to COPY and to a shell script.")
  .option("--events <count>", "about so many events", wholeNumber, 600_000)
  .option("--repeats <count>", "turns of every contestant, interleaved", wholeNumber, 5)
  .option("--sessions <count>", "zones that are read at once, each by a session of its own", wholeNumber, 3)
  .option("--json", "all figures as JSON")
  .addHelpText("after", EXAMPLES)
  .action(async ({ json, ...options }: Flags) => {
    const onProgress = (what: string) => void process.stderr.write(`${what}\n`);
    const result = await benchIngest({ ...options, onProgress });
    const verdicts = judgeIngest(result);
    const figures = { ...result, diskByTable: Object.fromEntries(result.diskByTable), verdicts };
    process.stdout.write(json ? `${JSON.stringify(figures)}\n` : reportIngest(result, verdicts));
    if (verdicts.some(({ isMet }) => isMet === false)) process.exitCode = 1;
  });

await new Command("bench")
  .description("Measures Longwatch against its peers.")
  .addCommand(ingest)
  .parseAsync();
