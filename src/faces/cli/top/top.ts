import { setTimeout as delay } from "node:timers/promises";
import type { ReadStream } from "node:tty";
import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { toPlainTexts } from "#lib/text.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { AskOperation } from "#operations/operation.ts";
import { type OverviewAnswer, showOverview } from "#operations/service/overview.ts";
import { SUMMARIES } from "../commands.ts";
import { createProcessIo, writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { writeJson } from "../edge/write-json.ts";
import { pickAsk } from "../operations/pick-ask.ts";
import { allowRemote } from "../operations/remote-commands.ts";
import { readZone } from "../options/read-options.ts";
import { follow, onRunningStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { cutLine, pickPaint } from "../terminal/print.ts";
import { describeOverview } from "./describe-overview.ts";

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
  npm run -s longwatch -- top --zone 101 --every 10
  npm run -s longwatch -- top --once
  npm run -s longwatch -- top --json`;

interface Flags {
  readonly zone?: string;
  readonly every?: string;
  readonly once?: true;
  readonly json?: true;
}

/** `longwatch top`: shows rates, lag, alerts and the rules that changed most, refreshed in place. */
export function topCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return allowRemote(storeCommand("top", SUMMARIES.top, HELP, io))
    .option("--zone <id>", "only this shield zone")
    .option("--every <seconds>", `refresh this often (default: ${DEFAULT_EVERY_S})`)
    .option("--once", "print once")
    .option("--json", "print once, as JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const zoneId = readZone(read, flags, false);
        const everyMs = readEvery(read, flags.every) * 1_000;
        read.finish();
        const config = readConfig();
        const ask = async (run: AskOperation) => {
          const now = io.clock();
          const zone = zoneId === undefined ? {} : { zone: String(zoneId) };
          const input = { ...zone, from: String(now - SPAN_MS), to: String(now) };
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
