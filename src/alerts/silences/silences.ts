/** The operations on silences. */
import { z } from "zod";
import { toSilencedAlert, wouldMute } from "#alerts/rules/silence.ts";
import { listAlerts, type ReportedAlert } from "#db/alerts/alert-reports.ts";
import { pageSilences } from "#db/alerts/silences.ts";
import { showAge, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import {
  ASKED_SILENCE_STATES,
  LASTING_SILENCE_STATES,
  SILENCE_STATES,
  UNRESOLVED_STATES,
} from "#model/kinds.ts";
import { oneOrMore, pageOf, pageQuery, RowId, toPage } from "#operations/fields.ts";
import { type Column, defineQuery } from "#operations/operation.ts";
import { Alert, readAlertView, toAlert } from "../operations/alert.ts";
import { addSilence } from "./add-silence.ts";
import { endSilence, extendSilence } from "./end-silence.ts";
import {
  describeMatchers,
  describeSilence,
  describeSilences,
  findSilence,
  readMatchers,
  Silence,
  WantedMatchers,
} from "./silence.ts";

const MAX_ALERTS = 10_000;
const MAX_SHOWN = 100;
const WEEK_MS = 7 * DAY_MS;

const Muted = z.object({
  count: z.number().int(),
  items: z.array(Alert).describe(`The newest ${MAX_SHOWN}.`),
});

const previewSilence = defineQuery({
  name: "silences.preview",
  summary: "Show which alerts a silence would mute now and would have muted in the last week",
  description: "Only alerts that the key may see are counted. Nothing is stored.",
  http: ["POST", "/api/v1/silences/preview"],
  tag: "Silences",
  scope: "read",
  refuses: [422],
  input: z.strictObject({ matchers: WantedMatchers }),
  output: z
    .object({
      now: Muted.describe("The unresolved alerts that the silence would mute now."),
      lastWeek: Muted.describe(
        "The alerts that fired in the last seven days and match, resolved ones as well.",
      ),
    })
    .meta({ id: "SilencePreview" }),
  example: { matchers: { zone: [101], rule: ["942*"] } },
  run: async ({ db, caller, now }, input) => {
    const { zoneIds } = caller;
    const matchers = readMatchers(input.matchers, caller);
    const view = await readAlertView(db, now);
    const show = (rows: readonly ReportedAlert[]) => {
      const matching = rows.filter((row) => wouldMute(matchers, toSilencedAlert(row)));
      const items = matching.slice(0, MAX_SHOWN).map((row) => toAlert(row, view));
      return { count: matching.length, items };
    };
    return {
      now: show(await listAlerts(db, { states: UNRESOLVED_STATES, zoneIds, limit: MAX_ALERTS })),
      lastWeek: show(await listAlerts(db, { sinceMs: now - WEEK_MS, zoneIds, limit: MAX_ALERTS })),
    };
  },
});

const STYLES = { active: "green", pending: "yellow", expired: "dim" } as const;

const COLUMNS: readonly Column<Silence>[] = [
  { head: "SILENCE", get: ({ id }) => `#${id}` },
  { head: "STATE", get: ({ state }) => ({ text: state, style: STYLES[state] }) },
  {
    head: "ENDS IN",
    get: ({ state, expiresAt }, { now }) =>
      state === "expired" ? "-" : showAge(Date.parse(expiresAt) - now),
  },
  { head: "FROM (UTC)", get: ({ startsAt }) => showTime(startsAt) },
  { head: "TO (UTC)", get: ({ expiresAt }) => showTime(expiresAt) },
  { head: "MUTES", get: ({ mutes }) => (mutes === null ? "-" : describeMuted(mutes)) },
  { head: "ALERTS", get: ({ matchers }) => describeMatchers(matchers) },
  { head: "BY", get: ({ createdBy }) => toLine(createdBy, 100) },
  { head: "REASON", get: ({ reason }) => toLine(reason, 200) },
];

/** `3, critical`: how many alerts, and the worst severity of them. */
function describeMuted({ count, alerts: [worst] }: NonNullable<Silence["mutes"]>) {
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
