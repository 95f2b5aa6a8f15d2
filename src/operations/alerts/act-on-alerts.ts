import { z } from "zod";
import { listAlerts, readAlert } from "#db/alerting/alert-reports.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { toLine } from "#lib/plain-text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import {
  ALERT_ACTS,
  ALERT_STATES,
  MANY_ACT_RESULTS,
  SILENCE_SCOPES,
  UNRESOLVED_STATES,
} from "#model/kinds.ts";
import { actorOf } from "../caller.ts";
import { maySee, Name, notFound, RowNumber, Text } from "../fields.ts";
import { type AuditNote, type Changing, defineChange } from "../operation.ts";
import { type Mistake, Refusal } from "../refusal.ts";
import { matchAlert, storeSilence } from "../silences/plan-silence.ts";
import { DurationMinutes } from "../silences/silence-end.ts";
import { acknowledgeByHand, Note, resolveAttacker, resolveByPerson } from "./act-on-alert.ts";
import { ALERT_FILTER, readFilter } from "./alert-filter.ts";
import { Marked, MarkWord, markSpikes, sayMarked } from "./mark-alert.ts";

/** The most alerts that one request names, and the most that its options select. */
const MOST_NAMED = 200;
const MOST_SELECTED = 1_000;
const MOST_KEY_CHARS = 2_000;

const NONE = "must be given, or options that select alerts";
const ONE = "must be given with the number of one alert, to resolve or to silence the attacker";
const BOTH = "must be given without options that select alerts";

const Acted = z.object({
  id: z.number().int(),
  result: z
    .enum(MANY_ACT_RESULTS)
    .describe("As for one alert. refused: nothing was changed, and `detail` says why."),
  state: z.enum(ALERT_STATES).nullable().describe("Null for a silence, and if refused."),
  channels: z.array(Name),
  acknowledgedBy: Text.nullable().describe("Of a noted alert: who acknowledged it."),
  silenceId: z
    .number()
    .int()
    .nullable()
    .describe("The silence that was added. Alerts with the same matchers get one."),
  marked: Marked.nullable().describe("Null if no mark was wanted, or the alert has no spike that is kept."),
  detail: Name.nullable(),
});
type Acted = z.infer<typeof Acted>;

const isOfOneAlert = ({
  act,
  ids,
  attacker,
}: {
  act: string;
  ids?: unknown[] | undefined;
  attacker?: unknown;
}) => attacker === undefined || (ids?.length === 1 && act !== "ack");

const hasTarget = ({ ids, select }: { readonly ids?: unknown; readonly select?: unknown }) =>
  ids !== undefined || select !== undefined;

const FILTER_HELP = "Options such as --zone select the alerts that match all of them.";

export const actOnAlerts = defineChange({
  name: "alerts.act",
  summary: "Acknowledge, resolve or silence many alerts",
  description:
    "Each alert is changed by itself, with its own audit entry. One that cannot be changed does not stop the others. Of alerts that `select` selects, those that the act can change are changed.",
  http: ["POST", "/api/v1/alerts/act"],
  tag: "Alerts",
  scope: "act",
  refuses: [422],
  // Each alert has a transaction of its own.
  isLong: true,
  input: z
    .strictObject({
      act: z.enum(ALERT_ACTS),
      ids: z
        .array(RowNumber("an alert"))
        .min(1)
        .max(MOST_NAMED)
        .optional()
        .meta({ operand: true })
        .describe("Numbers of alerts."),
      select: z
        .strictObject(ALERT_FILTER)
        .optional()
        .describe("Instead of numbers: what the alerts have in common."),
      note: Note,
      mark: MarkWord.optional().meta({ flag: "as" }).describe("Says what the alerts were, as well."),
      durationMinutes: DurationMinutes.meta({ flag: "for", unit: "minutes" }).describe(
        "Of silences: how long they last, such as 30m, 2h or 7d.",
      ),
      attacker: z
        .string()
        .min(1)
        .max(MOST_KEY_CHARS)
        .optional()
        .describe(
          "Resolve or silence only this attacker of one incident: its address, network, JA4, path or user agent.",
        ),
      scope: z
        .enum(SILENCE_SCOPES)
        .optional()
        .meta({ flag: null })
        .describe(
          "Of silences: whether they name the alert's address, network or other source, its rule, or its zone. Default: the narrowest that the alert has.",
        ),
    })
    .refine(hasTarget, { path: ["ids"], error: NONE, when: () => true })
    .refine(({ ids, select }) => ids === undefined || select === undefined, { path: ["ids"], error: BOTH })
    .refine(isOfOneAlert, { path: ["attacker"], error: ONE }),
  output: z.object({ by: Text.describe("Who acted."), items: z.array(Acted) }),
  example: { act: "ack", ids: [17, 18], note: "on it" },
  command: [
    {
      name: "ack",
      summary: "Acknowledge alerts: Longwatch sends no more reminders",
      preset: { act: "ack", attacker: undefined, durationMinutes: undefined },
      examples: [
        "alerts ack 17 18 19",
        "alerts ack --zone 101 --severity info,warning",
        'alerts ack 17 --by alice --note "on it"',
      ],
      help: `Longwatch sends no reminders for an acknowledged alert. If the alert gets worse, its channels are still notified. The alert resolves as usual. A second ack with another note adds that note. ${FILTER_HELP}`,
      say: ({ by, items }, { input }) => sayAll(by, items, input),
      exitCode: ({ items }) => Number(items.some(isRefused)),
    },
    {
      name: "resolve",
      summary: "Resolve alerts and notify their channels",
      preset: { act: "resolve", durationMinutes: undefined },
      examples: [
        "alerts resolve 17 18",
        'alerts resolve 17 --by alice --note "a campaign" --as misfire',
        'alerts resolve 17 --attacker 203.0.113.9 --note "blocked at the edge"',
      ],
      help: `Longwatch notifies every channel that was notified of the alert, once. The spike of the alert raises no alert again; a later spike does. An alert of Longwatch about itself fires again if its cause lasts. The alert of an incident fires again if another attacker joins. With --attacker, the incident's messages no longer name that attacker, and the alert resolves once no other attacker is active. --as says what the alert was: see "alerts mark". ${FILTER_HELP}`,
      say: ({ by, items }, { input }) => sayAll(by, items, input),
      exitCode: ({ items }) => Number(items.some(isRefused)),
    },
    {
      name: "silence",
      summary: "Silence what alerts are about",
      preset: { act: "silence" },
      examples: [
        'alerts silence 17 --for 2h --note "known scanner"',
        'alerts silence 17 --attacker 203.0.113.9 --for 2h --note "our own test"',
      ],
      help: `Adds a silence for the address, network or other source of each alert, or else for its rule. With --attacker, the silence names that attacker of an incident; the other attackers still notify. "silences add" has more choices. ${FILTER_HELP}`,
      say: ({ by, items }, { input }) => sayAll(by, items, input),
      exitCode: ({ items }) => Number(items.some(isRefused)),
    },
  ],
  run: async (changing, input) => {
    if (input.act === "silence") requireSilence(input);
    const silences = new Map<string, number>();
    const items: Acted[] = [];
    for (const id of await readIds(changing, input)) items.push(await actOn(changing, id, input, silences));
    return { output: { by: changing.caller.name, items }, audit: null };
  },
});
type Wanted = z.output<typeof actOnAlerts.input>;

/** @throws {Refusal} 422 */
function requireSilence({ note, durationMinutes }: Wanted): void {
  const mistakes = [
    ...(note === undefined ? [{ field: "note", rule: "must say why the alerts are silenced" }] : []),
    ...(durationMinutes === undefined
      ? [{ field: "durationMinutes", rule: "must say how long the silences last, from 1 to 129600" }]
      : []),
  ];
  if (mistakes.length > 0) throw refuseInput("invalid-silence", mistakes);
}

async function readIds(changing: Changing, { act, ids, select }: Wanted): Promise<Iterable<number>> {
  if (select === undefined) {
    if (ids === undefined) throw refuseInput("no-alerts", [{ field: "ids", rule: NONE }]);
    return new Set(ids);
  }
  if (ids !== undefined) throw refuseInput("no-alerts", [{ field: "ids", rule: BOTH }]);
  const states = act === "ack" ? (["firing"] as const) : UNRESOLVED_STATES;
  const filter = await readFilter(changing, select);
  const rows = await listAlerts(changing.db, { ...filter, states, limit: MOST_SELECTED + 1 });
  if (rows.length <= MOST_SELECTED) return rows.map(({ id }) => id);
  const detail = `These options select more than ${MOST_SELECTED} alerts. Select fewer.`;
  throw new Refusal(422, { slug: "too-many-alerts", detail });
}

function refuseInput(slug: string, mistakes: readonly Mistake[]): Refusal {
  return new Refusal(422, { slug, mistakes });
}

/** Changes one alert and writes its audit entries in one transaction. Alerts that the same matchers mute get one silence. */
async function actOn(
  { caller, database, now }: Changing,
  id: number,
  { act, mark, scope, attacker, durationMinutes = 0, ...wanted }: Wanted,
  silences: Map<string, number>,
): Promise<Acted> {
  const note = wanted.note ?? null;
  const nothing = { id, state: null, channels: [], acknowledgedBy: null, silenceId: null, marked: null };
  const refused = (detail: string): Acted => ({ ...nothing, result: "refused", detail });
  let key = "";
  const acted = await inTransaction(database, async ({ tx }): Promise<Acted> => {
    const write = async (audit: AuditNote | null) => {
      if (audit !== null) await writeAuditEntry(tx, { actor: actorOf(caller), ...audit });
    };
    const row = await readAlert(tx, id);
    if (row === null || !maySee(caller, row.zoneId)) return refused(notFound(`alert ${id}`).message);
    // Marking twice changes nothing, so an interrupted command can be repeated.
    const marks = mark === undefined ? null : await markSpikes(tx, { alertId: id, mark, note, atMs: now });
    await write(marks?.audit ?? null);
    const marked = marks?.marked ?? null;
    if (act === "silence") {
      const matchers = matchAlert(row, caller, { scope, attacker });
      if (typeof matchers === "string") return { ...refused(matchers), marked };
      key = JSON.stringify(matchers);
      const known = silences.get(key);
      if (known !== undefined) return { ...nothing, result: "done", marked, silenceId: known, detail: null };
      const expiresAtMs = now + durationMinutes * MINUTE_MS;
      const silence = { matchers, expiresAtMs, reason: note ?? "", by: caller.name, nowMs: now };
      const stored = await storeSilence(tx, silence);
      await write(stored.audit);
      return { ...nothing, result: "done", marked, silenceId: stored.id, detail: null };
    }
    const change = act === "ack" ? acknowledgeByHand : resolveByPerson;
    const acting = { alertId: id, by: caller.name, note, atMs: now };
    const done =
      attacker === undefined
        ? await change(tx, acting)
        : await resolveAttacker(tx, acting, { masked: caller.masked, attacker });
    if (typeof done === "string") return { ...refused(done), marked };
    const { result, audit } = done;
    await write(audit);
    if (result.kind === "unknown") return refused(notFound(`alert ${id}`).message);
    const { state, kind } = result;
    if (act === "ack" && kind === "unchanged" && state === "resolved")
      return {
        ...refused(`Alert ${id} is already resolved. Only unresolved alerts can be acknowledged.`),
        marked,
      };
    const { channels, acknowledgedBy } = kind === "unchanged" ? nothing : result;
    return { ...nothing, result: kind, state, channels: [...channels], acknowledgedBy, marked, detail: null };
  });
  // A transaction that Postgres undid has stored no silence.
  if (acted.silenceId !== null) silences.set(key, acted.silenceId);
  return acted;
}

function isRefused({ result }: Acted): boolean {
  return result === "refused";
}

function sayAll(
  by: string,
  items: readonly Acted[],
  { mark, attacker }: { readonly mark?: unknown; readonly attacker?: string | undefined },
): string {
  if (items.length === 0) return "No alert matches; nothing was changed.\n";
  const sayMark = ({ id, result, marked }: Acted) => {
    if (marked !== null) return sayMarked(id, by, marked);
    return mark !== undefined && result !== "refused"
      ? `alert #${id} has no stored spike; only an alert of a stored spike can be marked.\n`
      : "";
  };
  return items.map((item) => `${sayActed(by, item, attacker)}${sayMark(item)}`).join("");
}

function sayActed(
  by: string,
  { id, result, state, acknowledgedBy, detail, ...acted }: Acted,
  attacker: string | undefined,
): string {
  if (result === "refused") return `${toLine(detail ?? "", 300)}\n`;
  const who = toLine(by, 100);
  if (acted.silenceId !== null) return `alert #${id} is silenced by silence #${acted.silenceId} of ${who}.\n`;
  if (attacker !== undefined && result === "done" && state !== "resolved")
    return `attacker ${toLine(attacker, 100)} of alert #${id} is resolved by ${who}; others are active.\n`;
  if (result === "unchanged") return `alert #${id} is already ${state}; nothing was changed.\n`;
  if (result === "noted") {
    const whose = acknowledgedBy === null ? "" : ` by ${toLine(acknowledgedBy, 100)}`;
    return `alert #${id} is already acknowledged${whose}; the note of ${who} was added.\n`;
  }
  const channels = acted.channels.map((channel) => toLine(channel, 60)).join(", ");
  const told =
    channels === ""
      ? "; no channel had been notified of the alert"
      : `; channels to be notified: ${channels}`;
  return `alert #${id} is ${state} by ${who}${state === "acknowledged" ? "" : told}.\n`;
}
