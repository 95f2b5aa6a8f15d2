import { z } from "zod";
import { listAlerts } from "#db/alerts/alert-reports.ts";
import { many } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { ALERT_ACTS, type AlertAct, MARKS, SILENCE_SCOPES, UNRESOLVED_STATES } from "#model/kinds.ts";
import { lineOf, RowId, RowNumber, Text } from "#operations/fields.ts";
import { type Changing, defineChange } from "#operations/operation.ts";
import { makeChange } from "#operations/perform.ts";
import { Refusal } from "#operations/refusal.ts";
import { DurationMinutes } from "../silences/end-silence.ts";
import { Acted, actOnAlert, describeUnmarked, Marked, NOTHING, type WantedAct } from "./act-on-alert.ts";
import { ALERT_FILTER, readFilter } from "./alert.ts";

/** The most alerts that one request names, and the most that its options select. */
const MOST_NAMED = 200;
const MOST_SELECTED = 1_000;
const MOST_KEY_CHARS = 2_000;

const MARK_RULE = `must be one of ${MARKS.join(", ")}`;
const MarkWord = z.enum(MARKS, MARK_RULE);
const Assignee = z
  .union([z.literal(""), lineOf(100)])
  .optional()
  .describe("Of assignments: who has the alerts from now on. Default: who asks. An empty text: nobody.");
const Note = lineOf(500).optional().describe("A reason, shown to everyone who looks at the alert.");

/** The members whose values depend on each other. */
interface Given extends Pick<WantedAct, "attacker" | "mark" | "note" | "durationMinutes" | "to"> {
  readonly act: AlertAct;
  readonly ids?: readonly unknown[] | undefined;
  readonly select?: object | undefined;
}

const RULES: readonly (readonly [field: string, rule: string, isBroken: (given: Given) => boolean])[] = [
  ["ids", "must be given, or options that select alerts", ({ ids, select }) => (ids ?? select) === undefined],
  [
    "ids",
    "must be given without options that select alerts",
    ({ ids, select }) => ids !== undefined && select !== undefined,
  ],
  [
    "attacker",
    "must be given with the number of one alert, to resolve or to silence the attacker",
    ({ act, ids, attacker }) =>
      attacker !== undefined && (ids?.length !== 1 || (act !== "resolve" && act !== "silence")),
  ],
  ["mark", MARK_RULE, ({ act, mark }) => act === "mark" && mark === undefined],
  [
    "note",
    "must say why the alerts are silenced",
    ({ act, note }) => act === "silence" && note === undefined,
  ],
  ["note", "must be the comment", ({ act, note }) => act === "comment" && note === undefined],
  ["to", "is only for the act assign", ({ act, to }) => act !== "assign" && to !== undefined],
  [
    "durationMinutes",
    "must say how long the silences last, from 1 to 129600",
    ({ act, durationMinutes }) => act === "silence" && durationMinutes === undefined,
  ],
];
const SLUGS: Readonly<Record<string, string>> = {
  ids: "no-alerts",
  mark: "invalid-mark",
  attacker: "invalid-attacker",
  to: "invalid-assignee",
};

/** The part of an input that the text about its results says. */
interface Described {
  readonly act?: unknown;
  readonly mark?: unknown;
  readonly attacker?: string | undefined;
  readonly to?: string | undefined;
}

/** The text and the exit code of each command. */
const SAID = {
  say: (
    { by, items }: { readonly by: string; readonly items: readonly Acted[] },
    { input }: { readonly input: Described },
  ) => describeAll(by, items, input),
  exitCode: ({ items }: { readonly items: readonly Acted[] }) =>
    Number(items.some(({ result }) => result === "refused")),
};

/** Flags that say nothing about an assignment or a comment. */
const NEITHER = { attacker: undefined, durationMinutes: undefined, mark: undefined } as const;

const FILTER_HELP = "Options such as --zone select the alerts that match all of them.";

export const actOnAlerts = defineChange({
  name: "alerts.act",
  summary: "Acknowledge, resolve, silence, mark, assign or comment many alerts",
  description:
    "Each alert is changed by itself, with its own audit entry. One that cannot be changed does not stop the others. Of alerts that `select` selects, those that the act can change are changed. `mark` is needed for the act `mark`; with another act, it marks the alerts as well.",
  http: ["POST", "/api/v1/alerts/act"],
  tag: "Alerts",
  scope: "act",
  refuses: [422],
  // Each alert has a transaction of its own.
  isLong: true,
  input: RULES.reduce(
    (input, [field, rule, isBroken]) => {
      const params = { slug: SLUGS[field] ?? "invalid-silence" };
      return input.refine((given) => !isBroken(given), {
        path: [field],
        error: rule,
        params,
        when: () => true,
      });
    },
    z.strictObject({
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
      to: Assignee,
      scope: z
        .enum(SILENCE_SCOPES)
        .optional()
        .meta({ flag: null })
        .describe(
          "Of silences: whether they name the alert's address, network or other source, its rule, or its zone. Default: the narrowest that the alert has.",
        ),
    }),
  ),
  output: z.object({ by: Text.describe("Who acted."), items: z.array(Acted) }),
  example: { act: "ack", ids: [17, 18], note: "on it" },
  command: [
    {
      name: "ack",
      summary: "Acknowledge alerts: Longwatch sends no more reminders",
      preset: { act: "ack", attacker: undefined, durationMinutes: undefined, to: undefined },
      examples: [
        "alerts ack 17 18 19",
        "alerts ack --zone 101 --severity info,warning",
        'alerts ack 17 --by alice --note "on it"',
      ],
      help: `Longwatch sends no reminders for an acknowledged alert. If the alert gets worse, its channels are still notified. The alert resolves as usual. A second ack with another note adds that note. ${FILTER_HELP}`,
      ...SAID,
    },
    {
      name: "resolve",
      summary: "Resolve alerts and notify their channels",
      preset: { act: "resolve", durationMinutes: undefined, to: undefined },
      examples: [
        "alerts resolve 17 18",
        'alerts resolve 17 --by alice --note "a campaign" --as misfire',
        'alerts resolve 17 --attacker 203.0.113.9 --note "blocked at the edge"',
      ],
      help: `Longwatch notifies every channel that was notified of the alert, once. The spike of the alert raises no alert again; a later spike does. An alert of Longwatch about itself fires again if its cause lasts. The alert of an incident fires again if another attacker joins. With --attacker, the incident's messages no longer name that attacker, and the alert resolves once no other attacker is active. --as says what the alert was: see "alerts mark". ${FILTER_HELP}`,
      ...SAID,
    },
    {
      name: "silence",
      summary: "Silence what alerts are about",
      preset: { act: "silence", to: undefined },
      examples: [
        'alerts silence 17 --for 2h --note "known scanner"',
        'alerts silence 17 --attacker 203.0.113.9 --for 2h --note "our own test"',
      ],
      help: `Adds a silence for the address, network or other source of each alert, or else for its rule. With --attacker, the silence names that attacker of an incident; the other attackers still notify. "silences add" has more choices. ${FILTER_HELP}`,
      ...SAID,
    },
    {
      name: "assign",
      summary: "Say who has alerts",
      preset: { act: "assign", ...NEITHER },
      examples: [
        "alerts assign 17",
        'alerts assign 17 18 --to alice --note "you know this shop"',
        "alerts assign 17 --to ''",
      ],
      help: `Without --to, Longwatch assigns the alerts to you. Channels that update their message show the assignee. An assignment sends no notification, and reminders continue until a person acknowledges the alert. ${FILTER_HELP}`,
      ...SAID,
    },
    {
      name: "comment",
      summary: "Add a comment to alerts",
      preset: { act: "comment", to: undefined, ...NEITHER },
      examples: ['alerts comment 17 --note "a test of our own, see the ticket"'],
      help: `The timeline of the alert shows the comment, also after the end of the alert. Nobody is notified. ${FILTER_HELP}`,
      ...SAID,
    },
  ],
  run: async (changing, { ids, select, ...wanted }) => {
    const { act, mark } = wanted;
    const silences = new Map<string, number>();
    const tryOn = (id: number, one: AlertAct) => tryAct(changing, one, { ...wanted, id, silences });
    const items: Acted[] = [];
    for (const id of new Set(ids ?? (select === undefined ? [] : await selectIds(changing, act, select)))) {
      // Marking twice changes nothing, so an interrupted command can be repeated.
      const marked = mark === undefined || act === "mark" ? null : (await tryOn(id, "mark")).marked;
      const acted = await tryOn(id, act);
      items.push({ ...acted, marked: acted.marked ?? marked });
    }
    return { output: { by: changing.caller.name, items }, audit: null };
  },
});

/** @throws {Refusal} 422 */
async function selectIds(
  changing: Changing,
  act: AlertAct,
  select: Parameters<typeof readFilter>[1],
): Promise<number[]> {
  const states = act === "ack" ? (["firing"] as const) : UNRESOLVED_STATES;
  const filter = await readFilter(changing, select);
  const rows = await listAlerts(changing.db, { ...filter, states, limit: MOST_SELECTED + 1 });
  if (rows.length <= MOST_SELECTED) return rows.map(({ id }) => id);
  const detail = `These options select more than ${MOST_SELECTED} alerts. Select fewer.`;
  throw new Refusal(422, { slug: "too-many-alerts", detail });
}

/** Does the act in a transaction of its own. A refusal becomes the result. */
async function tryAct(changing: Changing, act: AlertAct, wanted: WantedAct): Promise<Acted> {
  try {
    return await makeChange(changing, (one) => actOnAlert(one, act, wanted));
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown;
    return { ...NOTHING, id: wanted.id, result: "refused", detail: thrown.message };
  }
}

function describeAll(by: string, items: readonly Acted[], input: Described): string {
  const { mark } = input;
  if (items.length === 0) return "No alert matches; nothing was changed.\n";
  const describeMark = ({ id, result, marked }: Acted) => {
    if (marked !== null) return describeMarked(id, by, marked);
    return mark !== undefined && result !== "refused" ? `${describeUnmarked(id)}\n` : "";
  };
  return items.map((item) => `${describeActed(by, item, input)}${describeMark(item)}`).join("");
}

function describeActed(
  by: string,
  { id, result, state, acknowledgedBy, detail, ...acted }: Acted,
  { act, attacker, to }: Described,
): string {
  if (result === "refused") return `${toLine(detail ?? "", 300)}\n`;
  const who = toLine(by, 100);
  if (acted.silenceId !== null) return `alert #${id} is silenced by silence #${acted.silenceId} of ${who}.\n`;
  if (attacker !== undefined && result === "done" && state !== "resolved")
    return `attacker ${toLine(attacker, 100)} of alert #${id} is resolved by ${who}; others are active.\n`;
  if (result === "unchanged")
    return act === "assign" || act === "comment"
      ? `alert #${id} says so already; nothing was changed.\n`
      : `alert #${id} is already ${state}; nothing was changed.\n`;
  if (act === "assign")
    return `alert #${id} is ${to === "" ? "nobody's" : `assigned to ${toLine(to ?? by, 100)}`} now, by ${who}.\n`;
  if (act === "comment") return `alert #${id} has a comment of ${who}.\n`;
  if (result === "noted") {
    const whose = acknowledgedBy === null ? "" : ` by ${toLine(acknowledgedBy, 100)}`;
    return `alert #${id} is already acknowledged${whose}; the note of ${who} was added.\n`;
  }
  const channels = acted.channels.map((channel) => toLine(channel, 60)).join(", ");
  const notified =
    channels === ""
      ? "; no channel had been notified of the alert"
      : `; channels to be notified: ${channels}`;
  return `alert #${id} is ${state} by ${who}${state === "acknowledged" ? "" : notified}.\n`;
}

function describeMarked(alertId: number, by: string, { result, mark, before, spikeIds }: Marked): string {
  if (result === "unchanged") return `alert #${alertId} is already marked as ${mark}; nothing was changed.\n`;
  const instead = before === null ? "" : ` instead of ${before}`;
  const hours =
    mark === "attack" ? "its hours leave the rule's history" : "its hours stay in the rule's history";
  return `alert #${alertId}: ${many(spikeIds.length, "spike")} marked as ${mark}${instead} by ${toLine(by, 100)}; ${hours}.\n`;
}

/** The addresses of one alert. Each of them does the act in one transaction, and throws the refusal. */
const ofOneAlert = { tag: "Alerts", scope: "act" } as const;
const stateAct = {
  ...ofOneAlert,
  input: z.strictObject({ id: RowId, note: Note }),
  output: Acted,
  example: { id: "17", note: "on it" },
} as const;

export const ackAlert = defineChange({
  ...stateAct,
  name: "alerts.ack",
  summary: "Acknowledge an alert, which stops its repeats",
  http: ["POST", "/api/v1/alerts/:id/ack"],
  refuses: [409],
  run: (changing, wanted) => actOnAlert(changing, "ack", wanted),
});

export const resolveAlert = defineChange({
  ...stateAct,
  name: "alerts.resolve",
  summary: "Resolve an alert and notify the channels that it notified",
  http: ["POST", "/api/v1/alerts/:id/resolve"],
  run: (changing, wanted) => actOnAlert(changing, "resolve", wanted),
});

export const markAlert = defineChange({
  ...ofOneAlert,
  name: "alerts.mark",
  summary: "Say what an alert was: an attack, or why it was none",
  description:
    "The hours of an attack leave the history that the rule's threshold is computed from; all other hours stay. `noise` means no attack, without a reason. A later mark replaces an earlier one.",
  http: ["POST", "/api/v1/alerts/:id/mark"],
  refuses: [409],
  input: z.strictObject({
    id: RowId.describe("The alert's number."),
    mark: MarkWord.meta({ flag: "as" }),
    note: lineOf(500).optional().describe("A reason for the audit trail."),
  }),
  output: Marked.extend({ id: z.number().int(), by: Text }),
  example: { id: "17", mark: "noise", note: "load test" },
  command: {
    examples: [
      "alerts mark 17 --as attack",
      "alerts mark 17 --as misfire",
      'alerts mark 17 --as noise --by alice --note "a load test"',
    ],
    help: 'misfire: the rule matches legitimate visitors. broken-client: a client repeats a request that cannot succeed. noise: no attack, without a reason. The hours of an attack leave the rule\'s history, so that the next attack like it is still a spike. The hours of every other mark stay in the history, so that harmless traffic becomes usual. The last mark counts. Longwatch notifies nobody of a mark. If a rule is often marked, and not as an attack, "alerts show" suggests a setting.',
    say: ({ id, by, ...marked }) => describeMarked(id, by, marked),
  },
  run: async (changing, wanted) => {
    const { output, audit } = await actOnAlert(changing, "mark", wanted);
    const { id, marked } = output;
    if (marked === null) throw new Error(`the mark of alert ${id} returned no result`);
    return { output: { id, by: changing.caller.name, ...marked }, audit };
  },
});
