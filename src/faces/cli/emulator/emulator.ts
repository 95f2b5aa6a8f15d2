import { Command, type Option } from "commander";
import {
  createEmulator,
  EMULATOR_DEFAULTS,
  type Emulator,
  type EmulatorOptions,
} from "#emulator/emulator.ts";
import { Switches } from "#emulator/emulator-context.ts";
import { parseFault } from "#emulator/faults.ts";
import { parseAttack } from "#emulator/traffic/attack.ts";
import { ATTACK_KINDS } from "#emulator/traffic/attack-kinds.ts";
import { UsageError } from "#lib/errors.ts";
import { many } from "#lib/format.ts";
import { writeJson } from "../edge/edge-io.ts";
import { describeUnknown } from "../store/store-command.ts";
import { addHelp } from "../terminal/help.ts";

const EXAMPLES = `
Examples:
  npm run -s longwatch -- emulator
  npm run -s longwatch -- emulator --port 8090 --zones 101,102,103 --seed demo --events-per-second 5
  npm run -s longwatch -- emulator --attack zone=101,rule=942100,start=+60s,duration=10m,rate=40/s
  npm run -s longwatch -- emulator --attack kind=scanner,zone=102,start=+2m
  npm run -s longwatch -- emulator --order newest --page-size 200 --fault rate-limit,operation=list-event-logs,probability=0.1,seconds=2
  npm run -s longwatch -- emulator --fault status,status=503,body=html,next=3 --switch errorResponse=default --switch lastToken=null

Attack kinds: rule (needs rule=), ${ATTACK_KINDS.slice(1).join(", ")}.
From crawler to deployment they are harmless; deployment needs rule=. From misfire-form on, a kind chooses its requests, with
headers and matched texts: rules that match legitimate visitors, a client that repeats itself, a search engine, scanners, attacks.
flip (needs rule=) logs its events in the first half of its duration and blocks them in the second. silence (needs rule=)
takes a rule out of the everyday events. outage shows no event of the zone until its end, and all of them then.

Fault kinds: rate-limit (retryAfter=seconds|date|none, seconds), status (status, body=json|plain|html|empty, contentType),
unauthorized (errorKey), envelope (errorKey, message), latency (ms), truncated-body (keep), slow-drip (bytes, everyMs),
cut-socket (at=before|headers|middle); of the search: hidden-rows (share); of the date-paged list: duplicate-page,
shortened-page (keep, endsEarly), dropped-events (share, passes), token-loop (pages), token-expiry, long-token (bytes);
of list and search: odd-entries (share, shape=unreadable|fraction|seconds|other-log|lower-headers|match-list).
All take operation, probability and next.

Switches: ${Object.keys(Switches.shape).join(", ")}.

A history of 72 hours begins 15 minutes later than the platform's limit, so that no hour expires during the first copy.
GET /_emulator on the printed address describes what the emulator holds.`;

/** The flags as typed. Each flag is checked here, so that all mistakes are reported together. */
interface Flags {
  readonly port: string;
  readonly host: string;
  readonly zones: string;
  readonly seed: string;
  readonly eventsPerSecond: string;
  readonly historyHours: string;
  readonly pageSize: string;
  readonly order: string;
  readonly lateShare: string;
  readonly adviceLatency: string;
  readonly accessKey: string;
  readonly attack: readonly string[];
  readonly fault: readonly string[];
  readonly switch: readonly string[];
  readonly json?: true;
  /** A path; `true` if not given; `false` for --no-state. */
  readonly state: string | boolean;
}

function createReader(mistakes: string[]) {
  function number(flag: string, text: string, rule: string, isValid: (value: number) => boolean): number {
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (!Number.isNaN(value) && isValid(value)) return value;
    mistakes.push(`--${flag} "${text}" must be ${rule}`);
    return 1;
  }

  function zones(text: string): number[] {
    const ids = text.split(",").map((part) => part.trim());
    if (ids.every((id) => /^[1-9]\d{0,8}$/.test(id)) && new Set(ids).size === ids.length)
      return ids.map(Number);
    mistakes.push(`--zones "${text}" must be different positive numbers separated by commas`);
    return [];
  }

  function switches(flags: Flags): Partial<Switches> {
    const given: Record<string, unknown> = {
      pageSize: number(
        "page-size",
        flags.pageSize,
        "a whole number from 1 to 100000",
        (n) => Number.isInteger(n) && n >= 1 && n <= 100_000,
      ),
      order: flags.order,
      adviceLatencyMs: number(
        "advice-latency",
        flags.adviceLatency,
        "whole milliseconds up to 600000",
        (n) => Number.isInteger(n) && n <= 600_000,
      ),
    };
    for (const text of flags.switch) {
      const [name = "", value = ""] = text.split(/=(.*)/s);
      const isNumeric = name.endsWith("Ms") || name === "pageSize";
      given[name] = isNumeric && /^\d+$/.test(value) ? Number(value) : value;
    }
    const parsed = Switches.partial().safeParse(given);
    if (parsed.success) return Switches.parse(given);
    for (const issue of parsed.error.issues) {
      const name = issue.path.join(".");
      const flag = name === "order" ? "--order" : "--switch";
      mistakes.push(`${flag} ${name === "" ? "" : `${name} "${String(given[name])}": `}${issue.message}`);
    }
    return {};
  }

  return { number, zones, switches };
}

/** Turns flags into options. Throws a UsageError that lists every mistake. */
function readEmulatorFlags(flags: Flags, command: Command): EmulatorOptions {
  const mistakes = describeUnknown(command, command.args);
  const read = createReader(mistakes);
  const faults = flags.fault.map(parseFault);
  mistakes.push(...faults.flatMap((parsed) => ("mistakes" in parsed ? parsed.mistakes : [])));
  for (const script of flags.attack) {
    // Parsed here only to find mistakes; the emulator parses the script again with its own clock.
    const parsed = parseAttack(script, Date.now());
    if ("mistakes" in parsed) mistakes.push(...parsed.mistakes);
  }
  const stateFile =
    flags.state === true ? `.longwatch/emulator-${flags.seed.replaceAll(/[^\w.-]/g, "_")}.json` : flags.state;
  const options = {
    port: read.number(
      "port",
      flags.port,
      "a port from 0 to 65535",
      (n) => Number.isInteger(n) && n <= 65_535,
    ),
    host: flags.host,
    zones: read.zones(flags.zones),
    seed: flags.seed,
    eventsPerSecond: read.number(
      "events-per-second",
      flags.eventsPerSecond,
      "more than 0 and at most 2000",
      (n) => n > 0 && n <= 2_000,
    ),
    historyHours: read.number("history-hours", flags.historyHours, "0 to 168 hours", (n) => n <= 168),
    lateShare: read.number("late-share", flags.lateShare, "a share from 0 to 1", (n) => n <= 1),
    accessKey: flags.accessKey,
    attacks: flags.attack,
    faults: faults.flatMap((parsed) => ("fault" in parsed ? [parsed.fault] : [])),
    switches: read.switches(flags),
    ...(stateFile === false ? {} : { stateFile }),
  };
  if (mistakes.length > 0) throw new UsageError(mistakes);
  return options;
}

/** Ends a forked emulator when its parent is gone, even before it is ready. The parent handles Ctrl-C. */
function followParent(): void {
  if (process.send === undefined) return;
  process.on("SIGINT", () => {});
  process.once("disconnect", () => process.exit(0));
  // The channel must not keep a failed process alive: the parent waits until the process is ready or gone.
  process.channel?.unref();
}

function closeOnSignal(emulator: Emulator): void {
  const close = () => void emulator.close().then(() => process.exit(0));
  process.once("SIGTERM", close);
  if (process.send === undefined) process.once("SIGINT", close);
  else process.send({ type: "ready", url: emulator.url, accessKey: emulator.accessKey });
}

async function run(flags: Flags, command: Command): Promise<void> {
  followParent();
  // The emulator goes on without a reader of its output, for example after `| head -3`.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  try {
    const emulator = await createEmulator(readEmulatorFlags(flags, command));
    const { url, accessKey } = emulator;
    if (flags.json === true)
      await writeJson(process.stdout, { url, accessKey, describe: `${url}/_emulator` });
    else
      process.stdout.write(
        `emulator ready\n  address     ${emulator.url}\n  access key  ${emulator.accessKey}\n  describe    ${emulator.url}/_emulator\n`,
      );
    closeOnSignal(emulator);
  } catch (thrown) {
    if (!(thrown instanceof UsageError)) throw thrown;
    process.stderr.write(
      `longwatch emulator: ${many(thrown.mistakes.length, "mistake")}\n${thrown.mistakes.map((mistake) => `  - ${mistake}\n`).join("")}`,
    );
    process.exitCode = 2;
  }
}

function collect(value: string, previous: readonly string[]): readonly string[] {
  return [...previous, value];
}

function describeOption({ description, defaultValue }: Option): string {
  return typeof defaultValue === "string" ? `${description} (default: ${defaultValue})` : description;
}

/** `longwatch emulator`: the platform for development and tests. */
export function emulatorCommand(): Command {
  const command = new Command("emulator")
    .option("--port <number>", "port to listen on; 0 takes a free one", "0")
    .option("--host <address>", "address to listen on", EMULATOR_DEFAULTS.host)
    .option("--zones <ids>", "shield zones, separated by commas", EMULATOR_DEFAULTS.zones.join(","))
    .option("--seed <text>", "seed of all generated data", EMULATOR_DEFAULTS.seed)
    .option(
      "--events-per-second <number>",
      "average over all zones together",
      String(EMULATOR_DEFAULTS.eventsPerSecond),
    )
    .option(
      "--history-hours <number>",
      "hours of history before the first start",
      String(EMULATOR_DEFAULTS.historyHours),
    )
    .option("--page-size <number>", "entries per page of the date-paged list", "1000")
    .option("--order <order>", "order of the date-paged list: oldest or newest first", "oldest")
    .option(
      "--late-share <share>",
      "share of events that show up minutes late",
      String(EMULATOR_DEFAULTS.lateShare),
    )
    .option("--advice-latency <ms>", "how long an AI recommendation takes", "1200")
    .option("--access-key <key>", "the access key that the emulator accepts", EMULATOR_DEFAULTS.accessKey)
    .option(
      "--attack <script>",
      "kind=..,zone=..,rule=..,start=..,duration=..,rate=.. (repeatable; kinds below)",
      collect,
      [],
    )
    .option("--fault <script>", "kind,key=value,... (repeatable; kinds below)", collect, [])
    .option("--switch <name=value>", "select a behaviour (repeatable; names below)", collect, [])
    .option("--state <file>", "file that keeps the history (default: .longwatch/emulator-<seed>.json)", true)
    .option("--no-state", "keep no history after the end")
    .option("--json", "print the address and the key as JSON")
    .allowUnknownOption()
    .allowExcessArguments()
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .action((flags: Flags, given: Command) => run(flags, given));
  // By default, commander quotes every default and shows empty lists and `true`.
  command.configureHelp({ optionDescription: describeOption });
  return addHelp(command, EXAMPLES);
}
