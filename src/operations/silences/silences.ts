import { z } from "zod";
import { pageSilences } from "#db/alerting/silences.ts";
import { showAge, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { ASKED_SILENCE_STATES, LASTING_SILENCE_STATES, SILENCE_STATES } from "#model/kinds.ts";
import { oneOrMore, pageOf, pageQuery, RowId, toPage } from "../fields.ts";
import { type Column, defineQuery } from "../operation.ts";
import { addSilence } from "./add-silence.ts";
import { endSilence, extendSilence } from "./end-silence.ts";
import { previewSilence } from "./preview-silence.ts";
import { describeSilence, describeSilences, findSilence, Silence, sayMatchers } from "./silence.ts";

const STYLES = { active: "green", pending: "yellow", expired: "dim" } as const;

const COLUMNS: readonly Column<Silence>[] = [
  { head: "SILENCE", get: ({ id }) => `#${id}` },
  { head: "STATE", get: ({ state }) => ({ text: state, style: STYLES[state] }) },
  {
    head: "ENDS IN",
    get: ({ state, expiresAt }, { now }) =>
      state === "expired" ? "-" : showAge(Date.parse(expiresAt) - now),
  },
  { head: "FROM (UTC)", get: ({ startsAt }) => showTime(Date.parse(startsAt)) },
  { head: "TO (UTC)", get: ({ expiresAt }) => showTime(Date.parse(expiresAt)) },
  { head: "MUTES", get: ({ mutes }) => (mutes === null ? "-" : sayMuted(mutes)) },
  { head: "ALERTS", get: ({ matchers }) => sayMatchers(matchers) },
  { head: "BY", get: ({ createdBy }) => toLine(createdBy, 100) },
  { head: "REASON", get: ({ reason }) => toLine(reason, 200) },
];

/** `3, critical`: how many alerts, and the worst severity of them. */
function sayMuted({ count, alerts: [worst] }: NonNullable<Silence["mutes"]>) {
  if (worst === undefined) return "0";
  const text = `${count}, ${worst.severity}`;
  return worst.severity === "critical" ? ({ text, style: "red" } as const) : text;
}

const listSilences = defineQuery({
  name: "silences.list",
  summary: "List silences, newest first",
  http: ["GET", "/api/v1/silences"],
  tag: "Silences",
  scope: "read",
  input: z.strictObject({
    state: oneOrMore(ASKED_SILENCE_STATES)
      .default([...LASTING_SILENCE_STATES])
      .describe(`Default: ${LASTING_SILENCE_STATES.join(", ")}.`),
    ...pageQuery({ fallback: 50, most: 200 }),
  }),
  output: pageOf(Silence),
  command: {
    examples: [
      "silences list",
      "silences list --state expired --limit 20",
      "silences list --state all --json",
    ],
    help: "The newest silence comes first. MUTES is the number of unresolved alerts that it mutes now, and their worst severity.",
    columns: COLUMNS,
    empty: "No silences.",
  },
  run: async (asked, { state, limit, after }) => {
    const { db, caller, cursors, now } = asked;
    const list = `silences:${state.join()}`;
    const [beforeId] = cursors.readAfter(list, after) ?? [];
    const rows = await pageSilences(db, {
      zoneIds: caller.zoneIds,
      states: SILENCE_STATES.filter((one) => state.includes(one) || state.includes("all")),
      nowMs: now,
      beforeId: beforeId === undefined ? undefined : Number(beforeId),
      limit: limit + 1,
    });
    const silences = await describeSilences(asked, rows);
    return toPage(
      silences,
      limit,
      (silence) => silence,
      ({ id }) => cursors.sign(list, [id]),
    );
  },
});

const showSilence = defineQuery({
  name: "silences.show",
  summary: "Show one silence",
  http: ["GET", "/api/v1/silences/:id"],
  tag: "Silences",
  scope: "read",
  input: z.strictObject({ id: RowId }),
  output: Silence,
  run: async (asked, { id }) => describeSilence(asked, await findSilence(asked.db, asked.caller, id)),
});

export const silenceOperations = [
  addSilence,
  listSilences,
  showSilence,
  extendSilence,
  endSilence,
  previewSilence,
];
