/** The command that shows the overview and refreshes it. */
import { setTimeout as delay } from "node:timers/promises";
import type { ReadStream } from "node:tty";
import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import type { Paint, Style } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { drawSparkline } from "#delivery/rules/message/text-width.ts";
import { type OverviewAnswer, showOverview } from "#health/service/overview.ts";
import { formatDecimal, formatWhole, showAge, showTime } from "#lib/format.ts";
import { asCalled } from "#lib/process.ts";
import { toLine, toPlainTexts } from "#lib/text.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { AskOperation } from "#operations/operation.ts";
import { createProcessIo, writeJson, writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { allowRemote, pickAsk } from "../operations/remote-commands.ts";
import { follow, onRunningStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { type Cell, cutLine, drawTable, pickPaint } from "../terminal/print.ts";

const DEFAULT_EVERY_S = 2;
const MAX_EVERY_S = 3_600;
/** Rates, trends and rules are those of the last hour. */
const SPAN_MS = HOUR_MS;
/** The other screen without a cursor, so that the shell's lines are there again afterwards. */
const OPEN_SCREEN = "\u001b[?1049h\u001b[?25l";
const CLOSE_SCREEN = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";
const CTRL_C = "\u0003";

const HELP = `
The first table shows each zone: events per minute over the last five minutes, events of the last hour, how far the search
lags behind, the hours until the platform forgets an hour that is not proven, and firing alerts. Then follow the firing
alerts, and the rules whose count is furthest above the usual one of the 28 days before. A red rule has an open spike.
On a terminal the screen is refreshed until q or Ctrl-C, also over a restart of the service. In a pipe, and with --once or --json,
the command prints once. --json prints the answer of GET /api/v1/overview for the last hour.

Examples:
  npm run -s longwatch -- top
  npm run -s longwatch -- top --zone 101,102 --every 10
  npm run -s longwatch -- top --once
  npm run -s longwatch -- top --json`;

interface Flags {
  readonly zone?: string;
  readonly account?: string;
  readonly every?: string;
  readonly once?: true;
  readonly json?: true;
}

/** `longwatch top`: shows rates, lag, alerts and the rules that changed most, refreshed in place. */
export function topCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return allowRemote(storeCommand("top", HELP, io))
    .option("--zone <ids>", "only these shield zones, with commas (default: all)")
    .option("--account <name>", "only the zones of this account, in the place of --zone")
    .option("--every <seconds>", `refresh this often (default: ${DEFAULT_EVERY_S})`)
    .option("--once", "print once")
    .option("--json", "print once, as JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const only = {
          ...(flags.zone === undefined ? {} : { zone: read.zones("zone", flags.zone) }),
          ...(flags.account === undefined ? {} : { account: flags.account }),
        };
        const everyMs = readEvery(read, flags.every) * 1_000;
        read.finish();
        const config = readConfig();
        const ask = async (run: AskOperation) => {
          const now = io.clock();
          const input = { ...only, from: String(now - SPAN_MS), to: String(now) };
          return (await run(showOverview, input)) as OverviewAnswer;
        };
        const once = pickAsk(config, io, null);
        if (flags.json === true) await writeJson(io.stdout, await ask(once));
        else if (flags.once === true || io.stdout.isTTY !== true)
          await writeOut(io.stdout, describeOverview(toPlainTexts(await ask(once)), pickPaint(io)));
        else if (config.remote !== null)
          await refresh(io, everyMs, (show, signal) => show(() => ask(pickAsk(config, io, null, signal))));
        else {
          const { askOn } = await import("../operations/ask-locally.ts");
          await refresh(io, everyMs, (show) =>
            onRunningStore(readConfig(), (database) =>
              show(() => ask(askOn(database, { config, clock: io.clock, actor: null }))),
            ),
          );
        }
      }),
    );
}

function readEvery(read: FlagReader, text: string | undefined): number {
  const rule = `whole seconds from 1 to ${MAX_EVERY_S}`;
  const seconds = read.integer("every", text, rule) ?? DEFAULT_EVERY_S;
  if (seconds < 1 || seconds > MAX_EVERY_S) read.wrong("every", text, rule);
  return seconds;
}

/** Shows what `show` gets, again and again. `open` calls it with the place to ask, and is called again after an outage. */
async function refresh(
  io: StoreIo,
  everyMs: number,
  open: (show: (read: () => Promise<OverviewAnswer>) => Promise<void>, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const paint = pickPaint(io);
  let isOpen = false;
  let last = "";
  const draw = async (text: string) => {
    const { columns = 80, rows = 24 } = io.stdout;
    const lines = text.trimEnd().split("\n").slice(0, rows);
    const screen = lines.map((line) => `${cutLine(line, columns)}${CLEAR_LINE}`).join("\r\n");
    await writeOut(io.stdout, `${isOpen ? "" : OPEN_SCREEN}${HOME}${screen}${CLEAR_BELOW}`);
    isOpen = true;
  };
  const quit = new AbortController();
  const release = watchQuit(io.stdin, () => quit.abort());
  const interrupted =
    io.interrupted === undefined ? quit.signal : AbortSignal.any([quit.signal, io.interrupted]);
  const onLost = (reason: string) => draw(`${paint("red", `${reason}. Trying again ...`)}\n${last}`);
  try {
    await follow({ interrupted }, { onLost, onBack: () => undefined }, ({ signal, onAnswer }) =>
      open(async (read) => {
        while (!signal.aborted) {
          last = describeOverview(toPlainTexts(await read()), paint);
          onAnswer();
          await draw(last);
          await delay(everyMs, undefined, { signal }).catch(() => undefined);
        }
      }, signal),
    );
  } finally {
    release();
    if (isOpen && !io.stdout.destroyed) io.stdout.write(CLOSE_SCREEN);
  }
}

/** Calls `onQuit` for the key q or Ctrl-C, which no signal follows in raw mode. Returns how to give the keyboard back. */
function watchQuit(input: StoreIo["stdin"], onQuit: () => void): () => void {
  const stdin = input as StoreIo["stdin"] & Partial<Pick<ReadStream, "isTTY" | "setRawMode">>;
  if (stdin.isTTY !== true) return () => undefined;
  const onKey = (keys: Buffer | string) => {
    if (["q", "Q", CTRL_C].some((key) => keys.includes(key))) onQuit();
  };
  stdin.setRawMode?.(true);
  stdin.on("data", onKey);
  return () => {
    stdin.off("data", onKey).pause();
    stdin.setRawMode?.(false);
  };
}

const MINUTE_MS = 60_000;
/** The rate is that of so many whole minutes. */
const RATE_MINUTES = 5;
const TREND_COLUMNS = 12;
const MAX_ALERTS = 8;
const NEAR_LOSS_HOURS = 24;
const LATE_MS = 2 * MINUTE_MS;

/** Returns the lines of `longwatch top`. */
function describeOverview(overview: OverviewAnswer, paint: Paint): string {
  const { now, zones, rules, attention, requestBudget } = overview;
  const none = zones.length === 0 ? asCalled("No data is stored yet: run npm start.\n") : "";
  return [
    `${paint("bold", "longwatch top")}   ${showTime(now)} UTC   ${describeBudget(requestBudget)}\n`,
    none,
    zones.length === 0 ? "" : drawZones(overview, paint),
    drawAlerts(overview, paint),
    rules.length === 0 ? "" : drawRules(rules, paint),
    attention.length === 0
      ? ""
      : asCalled(`\n${paint("bold", "Needs attention")} (npm run -s longwatch -- status says more):\n`),
    attention.map(({ text }) => `  ${toLine(text, 300)}\n`).join(""),
  ]
    .filter((part) => part !== "")
    .join("");
}

function describeBudget(budget: OverviewAnswer["requestBudget"]): string {
  if (budget === null) return "requests: none yet";
  const { tokens, ratePerSecond, isPaused } = budget;
  return isPaused
    ? "requests: paused by the platform"
    : `requests: ${Math.floor(tokens)} left now, ${ratePerSecond}/s`;
}

const ZONE_HEAD = ["ZONE", "PER MIN", "LAST HOUR", "LAG", "TO LOSS", "ALERTS", "TREND"];

function drawZones({ now, from, to, zones }: OverviewAnswer, paint: Paint): string {
  const nowMs = Date.parse(now);
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
  const rows = zones.map((zone): Cell[] => {
    const counts = Array.from({ length: Math.round((toMs - fromMs) / MINUTE_MS) }, () => 0);
    for (const { startsAtMs, blocked, challenged, logged, other } of zone.points)
      counts[(startsAtMs - fromMs) / MINUTE_MS] = blocked + challenged + logged + other;
    const sum = (some: readonly number[]) => some.reduce((total, one) => total + one, 0);
    // The last minute has only begun.
    const perMinute = sum(counts.slice(-1 - RATE_MINUTES, -1)) / RATE_MINUTES;
    const lagMs = zone.searchedThrough === null ? null : nowMs - Date.parse(zone.searchedThrough);
    const { hoursToLoss, alertsFiring: firing } = zone;
    return [
      toLine(zone.name ?? String(zone.id), 14),
      showRate(perMinute),
      formatWhole(sum(counts)),
      lagMs === null ? "-" : warn(showAge(lagMs), lagMs > LATE_MS, "yellow"),
      hoursToLoss === null ? "-" : warn(`${hoursToLoss.toFixed(1)} h`, hoursToLoss < NEAR_LOSS_HOURS, "red"),
      warn(String(firing), firing > 0, "red"),
      drawSparkline(counts, TREND_COLUMNS),
    ];
  });
  return `\n${drawTable(ZONE_HEAD, rows, paint)}`;
}

function drawAlerts({ now, alerts }: OverviewAnswer, paint: Paint): string {
  const firing = alerts.filter(({ state }) => state === "firing");
  if (firing.length === 0) return `\nNo alert fires.\n`;
  const rows = firing
    .slice(0, MAX_ALERTS)
    .map(({ id, severity, firedAt, headline, silence }): Cell[] => [
      `#${id}`,
      warn(
        silence === null ? severity : `${severity}, silenced`,
        severity === "critical" || severity === "error",
        "red",
      ),
      showAge(Date.parse(now) - Date.parse(firedAt)),
      headline === null ? "(the stored message cannot be read)" : toLine(headline, 200),
    ]);
  const more = firing.length - rows.length;
  const rest = more > 0 ? asCalled(`${more} more: npm run -s longwatch -- alerts list\n`) : "";
  return `\n${drawTable(["FIRING", "SEVERITY", "AGE", "HEADLINE"], rows, paint)}${rest}`;
}

function drawRules(rules: OverviewAnswer["rules"], paint: Paint): string {
  const rows = rules.map(
    ({ zoneId, ruleId, title, perMinute, usualPerMinute, sparkline, openSpikeId }): Cell[] => [
      warn(toLine(ruleId, 20), openSpikeId !== null, "red"),
      String(zoneId),
      showRate(perMinute),
      usualPerMinute === null ? "-" : showRate(usualPerMinute),
      describeChange(perMinute, usualPerMinute),
      drawSparkline(sparkline, TREND_COLUMNS),
      toLine(title ?? "", 60),
    ],
  );
  return `\n${drawTable(["RULE", "ZONE", "PER MIN", "USUAL", "CHANGE", "TREND", "TITLE"], rows, paint)}`;
}

function describeChange(now: number, usual: number | null): string {
  if (usual === null) return "-";
  if (usual === 0) return "new";
  const factor = now / usual;
  return factor >= 10 ? `x${formatWhole(Math.round(factor))}` : `x${factor.toFixed(1)}`;
}

function showRate(perMinute: number): string {
  if (perMinute < 1) return formatDecimal(perMinute);
  return perMinute >= 10 ? formatWhole(Math.round(perMinute)) : perMinute.toFixed(1);
}

function warn(text: string, isBad: boolean, style: Style): Cell {
  return isBad ? { text, style } : text;
}
