import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { pageSilences } from "#db/alerting/silences.ts";
import { readSilenceView, toSilence } from "#faces/http/routes/v1/silences.ts";
import { showAge } from "#lib/ago.ts";
import { toLine } from "#lib/plain-text.ts";
import { showTime } from "#lib/show-time.ts";
import { LASTING_SILENCE_STATES, SILENCE_STATES } from "#model/kinds.ts";
import type { Paint, Style } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { gather, readWords } from "../options/read-list.ts";
import {
  AFTER_OPTION,
  describeNext,
  oneMore,
  type PageFlags,
  readPage,
  toListPage,
} from "../options/read-page.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { type Cell, drawTable } from "../terminal/draw-table.ts";
import { pickPaint } from "../terminal/pick-paint.ts";
import { describeMatchers } from "./describe-silence.ts";

const DEFAULT_LIMIT = 1_000;
/** The rights of the command: it reads the database directly, so it sees every zone unmasked. */
const EVERYTHING = { zoneIds: null, masked: false } as const;

const HELP = `
The newest silence comes first. MUTES is the number of unresolved alerts that it mutes now, and their worst severity. Without --state, expired silences are left out. --json prints the answer of
GET /api/v1/silences.

Examples:
  npm run -s longwatch -- silences list
  npm run -s longwatch -- silences list --state expired --limit 20
  npm run -s longwatch -- silences list --all --json`;

interface Flags extends PageFlags {
  readonly state?: readonly string[];
  readonly all?: true;
  readonly json?: true;
}

export function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List silences.", HELP, io)
    .option(
      "--state <states>",
      `${SILENCE_STATES.join(", ")} (default: ${LASTING_SILENCE_STATES.join(",")})`,
      gather,
    )
    .option("--all", "show every state")
    .option("--limit <n>", `show at most this many (default: ${DEFAULT_LIMIT})`)
    .option(...AFTER_OPTION)
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const named = readWords(read, "state", flags.state, SILENCE_STATES) ?? LASTING_SILENCE_STATES;
        const states = flags.all === true ? SILENCE_STATES : named;
        const asked = readPage(read, flags, DEFAULT_LIMIT);
        read.finish();
        const { rows, view } = await withStore(readConfig(), async (database) => {
          const nowMs = (await readServiceClock(database, io.clock))();
          const query = { zoneIds: null, states, nowMs, ...oneMore(asked) };
          const rows = await pageSilences(database.db, query);
          return { rows, view: await readSilenceView(database.db, EVERYTHING, rows, nowMs) };
        });
        const page = toListPage(rows, asked, (row) => toSilence(row, view));
        if (flags.json === true) await writeJson(io.stdout, page);
        else await writeOut(io.stdout, describe(page, view.nowMs, pickPaint(io)));
      }),
    );
}

type Item = ReturnType<typeof toSilence>;

const HEAD = ["SILENCE", "STATE", "ENDS IN", "FROM (UTC)", "TO (UTC)", "MUTES", "ALERTS", "BY", "REASON"];
const STYLES: Readonly<Record<Item["state"], Style>> = { active: "green", pending: "yellow", expired: "dim" };

function describe(
  { items, next }: { readonly items: readonly Item[]; readonly next: string | null },
  nowMs: number,
  paint: Paint,
): string {
  if (items.length === 0) return "No silences.\n";
  return `${drawTable(
    HEAD,
    items.map((item) => toRow(item, nowMs)),
    paint,
  )}${describeNext(next)}`;
}

/** Reason, name and rules are untrusted text. */
function toRow(
  { id, state, startsAt, expiresAt, createdBy, reason, matchers, mutes }: Item,
  nowMs: number,
): Cell[] {
  const endsAt = Date.parse(expiresAt);
  return [
    `#${id}`,
    { text: state, style: STYLES[state] },
    state === "expired" ? "-" : showAge(endsAt - nowMs),
    showTime(Date.parse(startsAt)),
    showTime(endsAt),
    mutes === null ? "-" : describeMuted(mutes),
    describeMatchers(matchers),
    toLine(createdBy, 100),
    toLine(reason, 200),
  ];
}

/** `3, critical`: how many alerts, and the worst severity of them. */
function describeMuted({ count, alerts: [worst] }: NonNullable<Item["mutes"]>): Cell {
  if (worst === undefined) return "0";
  const text = `${count}, ${worst.severity}`;
  return worst.severity === "critical" ? { text, style: "red" } : text;
}
