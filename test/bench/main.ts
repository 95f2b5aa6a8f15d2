import { tmpdir } from "node:os";
import path from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { EVENT_FORMATS, type EventFormat } from "#model/kinds.ts";
import { benchAccounts, meetsLimits, reportAccounts } from "./accounts.ts";
import { benchArchiveDay, reportArchiveDay } from "./archive-day.ts";
import { benchClickHouse } from "./clickhouse.ts";
import { benchConditions, judgeConditions, reportConditions } from "./conditions.ts";
import { benchConsole, reportConsole } from "./console.ts";
import { benchForward, reportForward } from "./forward.ts";
import { judgeIngest } from "./ingest/judge.ts";
import { reportIngest } from "./ingest/report.ts";
import { benchIngest } from "./ingest.ts";
import { judge } from "./measure.ts";
import { createProgressBar } from "./progress-bar.ts";
import { benchRequests, reportRequests } from "./requests.ts";
import { followPlans } from "./review/follow-plan.ts";
import { benchReview, judgeReview, reportReview } from "./review.ts";
import { benchRises, reportRises } from "./rises.ts";
import { judgeSearch } from "./search/judge.ts";
import { reportSearch } from "./search/report.ts";
import { benchSearch } from "./search.ts";
import { judgeServe, reportServe } from "./serve/report.ts";
import { benchServe } from "./serve.ts";
import { benchTicks, judgeTicks, reportTicks } from "./ticks.ts";
import { benchZones, judgeZones, reportZones } from "./zones.ts";

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

/** `2m,10m` or plain numbers. */
function sizes(text: string): number[] {
  return text.split(",").map((part) => {
    const match = /^([1-9]\d{0,8})(k|m)?$/i.exec(part.trim());
    if (match === null) throw new InvalidArgumentError("must be counts such as 2m,10m or 500000.");
    return (
      Number(match[1]) * { "": 1, k: 1_000, m: 1_000_000 }[(match[2] ?? "").toLowerCase() as "" | "k" | "m"]
    );
  });
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

const SEARCH_EXAMPLES = `
Examples:
  npm run bench -- search
  npm run -s bench -- search --events 2m --keep /var/tmp/longwatch-bench
  npm run -s bench -- search --events 500k --repeats 5 --json

Exit code 1 when a limit is missed. Kept data sets are used again; 10 million events take about 22 GB.`;

interface SearchFlags {
  readonly events: readonly number[];
  readonly repeats: number;
  readonly keep?: string;
  readonly json?: true;
}

const search = new Command("search")
  .description("Searches over ninety days of events, next to DuckDB over the same ones.")
  .option("--events <counts>", "sizes of the data sets", sizes, [2_000_000, 10_000_000])
  .option("--repeats <count>", "turns of both sides at every question, interleaved", wholeNumber, 15)
  .option("--keep <folder>", "leave the data sets there, and use those that are there")
  .option("--json", "all figures as JSON")
  .addHelpText("after", SEARCH_EXAMPLES)
  .action(async ({ json, keep, ...options }: SearchFlags) => {
    const onProgress = createProgressBar(process.stderr);
    const results = await benchSearch({ ...options, keep: keep ?? null, onProgress });
    const judged = results.map((result) => ({ result, verdicts: judgeSearch(result) }));
    const text = json
      ? `${JSON.stringify(judged.map(({ result, verdicts }) => ({ ...result, verdicts })))}\n`
      : judged.map(({ result, verdicts }) => reportSearch(result, verdicts)).join("\n");
    process.stdout.write(text);
    if (judged.some(({ verdicts }) => verdicts.some(({ isMet }) => isMet === false))) process.exitCode = 1;
  });

interface ZonesFlags {
  readonly zones: number;
  readonly events: readonly number[];
  readonly repeats: number;
  readonly keep?: string;
  readonly json?: true;
}

const zones = new Command("zones")
  .description("Searches of all of many zones, next to one zone with the same events.")
  .option("--zones <count>", "zones", wholeNumber, 200)
  .option("--events <count>", "events of 30 days, all zones together", sizes, [648_000])
  .option("--repeats <count>", "turns of both sides at every question", wholeNumber, 10)
  .option("--keep <folder>", "leave the data set there, and use the one that is there")
  .option("--json", "all figures as JSON")
  .action(async ({ json, keep, events: [events = 0], ...options }: ZonesFlags) => {
    const timed = await benchZones({
      ...options,
      events,
      keep: keep ?? null,
      onProgress: createProgressBar(process.stderr),
    });
    const verdicts = judgeZones(timed);
    process.stdout.write(json ? `${JSON.stringify({ timed, verdicts })}\n` : reportZones(timed, verdicts));
    if (verdicts.some(({ isMet }) => isMet === false)) process.exitCode = 1;
  });

interface ServeFlags {
  readonly events: readonly number[];
  readonly ingested: number;
  readonly connections: number;
  readonly repeats: number;
  readonly keep: string;
  readonly json?: true;
}

const clickHouse = new Command("clickhouse")
  .description("The same questions over the archive's files, asked to ClickHouse: are the answers equal?")
  .requiredOption("--installed <folder>", "where `npm install chdb` was run: the package has 500 MB")
  .option("--events <count>", "about so many events", wholeNumber, 200_000)
  .option("--keep <folder>", "leave the data set there, and use the one that is there")
  .action(
    async ({ keep = null, ...options }: { events: number; installed: string; keep?: string | null }) => {
      const onProgress = createProgressBar(process.stderr);
      const lines = await benchClickHouse({ ...options, keep, onProgress });
      process.stdout.write(`${lines.join("\n")}\n`);
      if (lines.some((line) => line.startsWith("DIFFERS"))) process.exitCode = 1;
    },
  );

const archiveDay = new Command("archive-day")
  .description("CPU, disk and memory of archiving one day, every event with a record.")
  .option("--events <count>", "events of the day", sizes, [2_000_000])
  .option("--json", "all figures as JSON")
  .action(async ({ json, events }: Pick<SearchFlags, "events" | "json">) => {
    const figures = await benchArchiveDay(events[0] ?? 0, createProgressBar(process.stderr));
    const verdict = judge("memory of the service and DuckDB", { kind: "at-most", value: 400, unit: "MB" }, [
      figures.peakBytes / 1e6,
    ]);
    process.stdout.write(json ? `${JSON.stringify(figures)}\n` : reportArchiveDay(figures, verdict));
    if (verdict.isMet === false) process.exitCode = 1;
  });

const serve = new Command("serve")
  .description("Ingest by itself, and while the slowest search is asked over HTTP without a pause.")
  .option("--events <count>", "events that are searched", sizes, [2_000_000])
  .option("--ingested <count>", "events that are ingested in each turn", wholeNumber, 300_000)
  .option("--connections <count>", "searches at a time", wholeNumber, 4)
  .option("--repeats <count>", "turns with and without searches, interleaved", wholeNumber, 5)
  .option("--keep <folder>", "where the searched events are kept", path.join(tmpdir(), "longwatch-bench"))
  .option("--json", "all figures as JSON")
  .action(async ({ json, events, ...options }: ServeFlags) => {
    const onProgress = createProgressBar(process.stderr);
    const result = await benchServe({ ...options, events: events[0] ?? 0, onProgress });
    const verdicts = judgeServe(result);
    process.stdout.write(
      json ? `${JSON.stringify({ ...result, verdicts })}\n` : reportServe(result, verdicts),
    );
    if (verdicts.some(({ isMet }) => isMet === false)) process.exitCode = 1;
  });

interface RequestsFlags {
  readonly hours: number;
  readonly eventsPerSecond: number;
  readonly json?: true;
}

const requests = new Command("requests")
  .description("Requests that one zone costs the platform, by operation and simulated hour.")
  .option("--hours <count>", "simulated hours, the first start included", wholeNumber, 6)
  .option("--events-per-second <number>", "of the zone; the demo's zones have 0.45", Number, 0.45)
  .option("--json", "all figures as JSON")
  .action(async ({ json, ...options }: RequestsFlags) => {
    const hours = await benchRequests({ ...options, onProgress: createProgressBar(process.stderr) });
    process.stdout.write(json ? `${JSON.stringify(hours)}\n` : reportRequests(hours));
  });

interface TicksFlags {
  readonly zones: number;
  readonly perMinute: number;
  readonly json?: true;
}

const ticks = new Command("ticks")
  .description("Time and CPU of one tick of the source series over many zones.")
  .option("--zones <count>", "zones", wholeNumber, 500)
  .option("--per-minute <count>", "events of each zone", wholeNumber, 2)
  .option("--json", "all figures as JSON")
  .action(async ({ json, ...options }: TicksFlags) => {
    const onProgress = (what: string) => void process.stderr.write(`${what}\n`);
    const measured = await benchTicks({ ...options, onProgress });
    process.stdout.write(json ? `${JSON.stringify(measured)}\n` : reportTicks(measured));
    if (judgeTicks(measured).some(({ isMet }) => isMet === false)) process.exitCode = 1;
  });

interface ConditionsFlags {
  readonly conditions: number;
  readonly perSecond: number;
  readonly json?: true;
}

const conditions = new Command("conditions")
  .description("CPU of custom conditions that are tested on events as they arrive.")
  .option("--conditions <count>", "conditions", wholeNumber, 1_000)
  .option("--per-second <count>", "events of the zone", wholeNumber, 100)
  .option("--json", "all figures as JSON")
  .action(async ({ json, ...options }: ConditionsFlags) => {
    const onProgress = (what: string) => void process.stderr.write(`${what}\n`);
    const measured = await benchConditions({ ...options, onProgress });
    process.stdout.write(json ? `${JSON.stringify(measured)}\n` : reportConditions(measured));
    if (judgeConditions(measured).some(({ isMet }) => isMet === false)) process.exitCode = 1;
  });

interface ForwardFlags {
  readonly events: readonly number[];
  readonly format: EventFormat;
  readonly json?: true;
}

const forward = new Command("forward")
  .description("Speed and CPU of forwarding a backlog to a webhook, beside an ingest that goes on.")
  .option("--events <count>", "stored events", sizes, [2_000_000])
  .addOption(new Option("--format <format>", "what is sent").choices(EVENT_FORMATS).default("event"))
  .option("--json", "all figures as JSON")
  .action(async ({ json, events: [events = 0], format }: ForwardFlags) => {
    const onProgress = (what: string) => void process.stderr.write(`${what}\n`);
    const measured = await benchForward({ events, format, onProgress });
    process.stdout.write(json ? `${JSON.stringify(measured)}\n` : reportForward(measured));
    if (measured.arrivedHours !== measured.hours) process.exitCode = 1;
  });

interface ReviewFlags {
  readonly zones: number;
  readonly seed: number;
  readonly events: readonly number[];
  readonly verbose?: true;
  readonly follow?: true;
  readonly json?: true;
}

const review = new Command("review")
  .description(
    "What plans for blocking are worth on drawn months that they were not made from, and their time.",
  )
  .option("--zones <count>", "drawn zones of each half", wholeNumber, 20)
  .option("--seed <number>", "1 to 9 are for development", wholeNumber, 10)
  .option("--events <count>", "events of the zone whose plan is timed", sizes, [2_000_000])
  .option("--verbose", "each rule with its plan and the truth")
  .option("--follow", "instead: what plans said, and what happened in the week in which they were followed")
  .option("--json", "all figures as JSON")
  .action(async ({ json, verbose, follow, events: [events = 0], ...options }: ReviewFlags) => {
    const onProgress = (what: string) => void process.stderr.write(`${what}\n`);
    if (follow) {
      process.stdout.write(await followPlans({ ...options, onProgress }));
      return;
    }
    const measured = await benchReview({ ...options, events, isVerbose: verbose === true, onProgress });
    const verdicts = judgeReview(measured);
    process.stdout.write(
      json ? `${JSON.stringify({ ...measured, verdicts })}\n` : reportReview(measured, verdicts),
    );
    if (verdicts.some(({ isMet }) => isMet === false)) process.exitCode = 1;
  });

interface RisesFlags {
  readonly rises: number;
  readonly realPlatform?: boolean;
  readonly groupWait?: string | null;
  readonly flood?: true;
  readonly atRest?: true;
  readonly eventsPerSecond: number;
  readonly historyHours: number;
  readonly seed: number;
  readonly json?: true;
}

const rises = new Command("rises")
  .description(
    "Time from the first event of a rise, a scanner or a botnet to the message, and the requests and CPU at rest.",
  )
  .option("--rises <count>", "rises, each in a zone of its own", wholeNumber, 20)
  .option("--real-platform", "poll as often as with a real platform instead of the demo")
  .option("--group-wait <time>", "of a route in the configuration file (default: no such file)")
  .option("--flood", "a botnet on 25 rules in each zone instead: what group_wait adds and saves")
  .option("--at-rest", "measure requests and CPU at rest only")
  .option("--events-per-second <number>", "of each zone at rest", Number, 0.45)
  .option("--history-hours <count>", "of history that is copied first", wholeNumber, 26)
  .option("--seed <number>", "of the rises", wholeNumber, 1)
  .option("--json", "all figures as JSON")
  .action(async ({ json, realPlatform = false, groupWait = null, flood, atRest, ...flags }: RisesFlags) => {
    const onProgress = (what: string) => void process.stderr.write(`${what}\n`);
    const isFlood = flood === true;
    const isRestOnly = atRest === true;
    const perSecond = flags.eventsPerSecond;
    const options = {
      ...flags,
      perSecond,
      isRealPlatform: realPlatform,
      groupWait,
      isFlood,
      isRestOnly,
      onProgress,
    };
    const measured = await benchRises(options);
    process.stdout.write(json ? `${JSON.stringify(measured)}\n` : reportRises(measured, options));
  });

interface AccountsFlags {
  readonly accounts: number;
  readonly zones: number;
  readonly requestsPerSecond: number;
  readonly eventsPerSecond: number;
  readonly historyHours: number;
  readonly minutes: number;
  readonly json?: true;
}

const accounts = new Command("accounts")
  .description("Lag and CPU with many accounts of the platform, each with a request budget of its own.")
  .option("--accounts <count>", "accounts", wholeNumber, 30)
  .option("--zones <count>", "zones of each account", wholeNumber, 10)
  .option("--requests-per-second <count>", "of each account", wholeNumber, 10)
  .option("--events-per-second <number>", "of all zones together", Number, 3)
  .option("--history-hours <count>", "of history that is copied first", wholeNumber, 3)
  .option("--minutes <count>", "of the measurement", wholeNumber, 10)
  .option("--json", "all figures as JSON")
  .action(async ({ json, ...flags }: AccountsFlags) => {
    const onProgress = (what: string) => void process.stderr.write(`${what}\n`);
    const measured = await benchAccounts({ ...flags, onProgress });
    process.stdout.write(json ? `${JSON.stringify(measured)}\n` : reportAccounts(measured, flags));
    if (!meetsLimits(measured)) process.exitCode = 1;
  });

interface ConsoleFlags {
  readonly url: string;
  readonly key?: string;
  readonly repeats: number;
  readonly json?: true;
}

const page = new Command("console")
  .description(
    "Time to a usable overview, and frames while events are scrolled, of a running service in Chromium.",
  )
  .option("--url <address>", "address of the service", "http://127.0.0.1:8080")
  .option("--key <key>", "a key of the service (default: LONGWATCH_KEY)")
  .option("--repeats <count>", "loads of the overview", wholeNumber, 5)
  .option("--json", "all figures as JSON")
  .action(
    async ({ url, key = process.env["LONGWATCH_KEY"], repeats, json }: ConsoleFlags, command: Command) => {
      if (key === undefined) command.error("error: give a key of the service with --key or LONGWATCH_KEY");
      const result = await benchConsole({ origin: url, key, repeats });
      process.stdout.write(json ? `${JSON.stringify(result)}\n` : `${reportConsole(result)}\n`);
    },
  );

await new Command("bench")
  .description("Measures Longwatch against its peers.")
  .addCommand(ingest)
  .addCommand(search)
  .addCommand(clickHouse)
  .addCommand(archiveDay)
  .addCommand(serve)
  .addCommand(zones)
  .addCommand(requests)
  .addCommand(ticks)
  .addCommand(conditions)
  .addCommand(forward)
  .addCommand(review)
  .addCommand(rises)
  .addCommand(accounts)
  .addCommand(page)
  .parseAsync();
