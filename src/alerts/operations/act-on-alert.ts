import { z } from "zod";
import {
  acknowledge,
  assign,
  comment,
  type PersonsAct,
  resolveByHand,
  toAcknowledgedMessage,
  toAssignedMessage,
  toResolvedMessage,
} from "#alerts/rules/act-on-alert.ts";
import { assigneeOf, notifiedChannels, toNotifications } from "#alerts/rules/alert-history.ts";
import { parseDetails, type Transition, toAlertRecord } from "#alerts/rules/alert-record.ts";
import { toAlertSpike } from "#alerts/rules/alert-spike.ts";
import { maskText } from "#archive/rules/mask.ts";
import type { ReportedAlert } from "#db/alerts/alert-reports.ts";
import {
  type AlertRow,
  addResolvedAttacker,
  describeAlert,
  insertNotifications,
  lockSpike,
} from "#db/alerts/alerts.ts";
import { lockSpikesOf, markSpike } from "#db/alerts/marks.ts";
import { lockAlert, storeAct } from "#db/alerts/unwatched-zones.ts";
import { forgetSourceDays } from "#db/detection/source-hours.ts";
import { resolveMembers, storeResolved } from "#jobs/alerts/resolve-alert.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { attackerIdOf } from "#model/fingerprint.ts";
import {
  ACT_RESULTS,
  ALERT_STATES,
  type AlertAct,
  MARK_RESULTS,
  MARKS,
  type Mark,
  type SilenceScope,
} from "#model/kinds.ts";
import { Name, notFound, Text } from "#operations/fields.ts";
import type { Changed, Changing } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { findAttacker, matchAlert, storeSilence } from "../silences/plan-silence.ts";
import { findAlert } from "./alert.ts";

/** An act on one alert. Each act reads only its own members. */
export interface WantedAct {
  readonly id: number;
  readonly note?: string | undefined;
  readonly to?: string | undefined;
  readonly mark?: Mark | undefined;
  readonly attacker?: string | undefined;
  readonly scope?: SilenceScope | undefined;
  readonly durationMinutes?: number | undefined;
  /** The silences that the same request has added, by their matchers. Alerts with the same matchers get one. */
  readonly silences?: Map<string, number>;
}

export const Marked = z.object({
  result: z.enum(MARK_RESULTS),
  mark: z.enum(MARKS),
  before: z.enum(MARKS).nullable(),
  spikeIds: z.array(z.number().int()).describe("The spikes whose mark was changed."),
});
export type Marked = z.infer<typeof Marked>;

export const Acted = z.object({
  id: z.number().int(),
  result: z
    .enum(ACT_RESULTS)
    .describe(
      "done: the alert was changed. unchanged: the alert already had that state. noted: the alert already had that state, and the note was added. refused: nothing was changed, and `detail` says why.",
    ),
  state: z.enum(ALERT_STATES).nullable().describe("Null for a silence and a mark, and if refused."),
  channels: z.array(Name).describe("The channels that are notified or updated."),
  acknowledgedBy: Text.nullable().describe("Of a noted alert: who acknowledged it."),
  silenceId: z
    .number()
    .int()
    .nullable()
    .describe("The silence that was added. Alerts with the same matchers get one."),
  marked: Marked.nullable().describe("Null if no mark was wanted, or the alert has no spike that is kept."),
  detail: Name.nullable(),
});
export type Acted = z.infer<typeof Acted>;

/** The members of a result that an act says nothing about. */
export const NOTHING = {
  state: null,
  channels: [],
  acknowledgedBy: null,
  silenceId: null,
  marked: null,
  detail: null,
} satisfies Partial<Acted>;

type Doing = Pick<Changing, "tx" | "caller" | "now" | "afterCommit">;
type Done = Changed<Partial<Acted>>;

/**
 * Does what a person wants with an alert, in the transaction. The result has no audit entry if nothing was changed.
 * @throws {Refusal} 404 if the caller may not see the alert, 409 if the alert does not allow the act
 */
export async function actOnAlert(doing: Doing, act: AlertAct, wanted: WantedAct): Promise<Changed<Acted>> {
  const { id } = wanted;
  const { output, audit } = await ACTS[act](doing, wanted, await findAlert(doing.tx, doing.caller, id));
  return { output: { ...NOTHING, id, result: "done", ...output }, audit };
}

const ACTS: Readonly<
  Record<AlertAct, (doing: Doing, wanted: WantedAct, seen: ReportedAlert) => Promise<Done>>
> = {
  ack: acknowledgeByHand,
  resolve: (doing, wanted) =>
    wanted.attacker === undefined
      ? resolveByPerson(doing, wanted)
      : resolveAttacker(doing, wanted, wanted.attacker),
  silence: silenceAlert,
  mark: markAlert,
  assign: assignByHand,
  comment: commentByHand,
};

/**
 * Acknowledges a firing alert: it gets no more reminders, but its channels are still notified when it gets worse. Writes
 * an `acknowledged` notification for every channel that was notified of the alert; the delivery drops it for channels
 * that cannot show it. If two callers acknowledge at once, one succeeds. A new note of an alert that is already
 * acknowledged is added in the same way.
 */
async function acknowledgeByHand(doing: Doing, { id, note }: WantedAct): Promise<Done> {
  const row = await lock(doing, id);
  const act = signed(doing, note);
  const { state, acknowledgedBy } = row;
  if (state === "resolved")
    throw new Refusal(409, {
      slug: "alert-resolved",
      detail: `Alert ${id} is already resolved. Only firing or acknowledged alerts can be acknowledged.`,
    });
  const isFirst = state === "firing";
  if (!isFirst && !hasNewNote(act, row)) return unchanged(state);
  const before = toAlertRecord(row);
  const transitions = acknowledge(before, act);
  const { message } = parseDetails(row.details);
  const columns = {
    state: "acknowledged" as const,
    details: message === null ? row.details : { message: { ...message, state: "acknowledged" as const } },
    acknowledgedAt: isFirst ? new Date(act.atMs) : row.acknowledgedAt,
    acknowledgedBy: isFirst ? act.by : acknowledgedBy,
  };
  const by = { ...act, takenBy: isFirst ? null : acknowledgedBy };
  const channels = await storeAndNotify(doing, row, { transitions, columns }, (stored, transition) =>
    toAcknowledgedMessage(stored, transition, by),
  );
  return changed(row, note, { result: isFirst ? "done" : "noted", state: "acknowledged", channels });
}

/**
 * Assigns an unresolved alert to a person, by default to the caller. Channels that update their message show the assignee. An
 * assignment sends no notification. A repeated request changes nothing.
 */
async function assignByHand(doing: Doing, { id, note, to }: WantedAct): Promise<Done> {
  const row = await lock(doing, id);
  if (row.state === "resolved")
    throw new Refusal(409, { slug: "alert-resolved", detail: `Alert ${id} is already resolved.` });
  const act = signed(doing, note);
  const before = toAlertRecord(row);
  const given = to ?? act.by;
  if ((assigneeOf(before) ?? "") === given) return unchanged(row.state);
  const transitions = assign(before, act, given);
  const channels = await storeAndNotify(doing, row, { transitions }, (stored, transition) =>
    toAssignedMessage(stored, transition, { ...act, to: given }),
  );
  return {
    output: { state: row.state, channels },
    audit: noteOf(id, "assigned", { to: maskText(given) }, note),
  };
}

/**
 * Stores the transitions of an alert, and a notification for every channel that was notified of it. Returns these channels.
 * `toMessage` gets the alert's last message and the number of the new transition.
 */
async function storeAndNotify(
  { tx }: Doing,
  row: AlertRow,
  { transitions, columns }: { transitions: Transition[]; columns?: Partial<AlertRow> },
  toMessage: (stored: unknown, transition: number) => AlertMessage,
): Promise<string[]> {
  const transition = transitions.length;
  await storeAct(tx, row.id, { ...columns, transitions, transition });
  const before = toAlertRecord(row);
  const channels = [...notifiedChannels(before)];
  if (channels.length > 0) {
    const message = toMessage(parseDetails(row.details).message, transition);
    await insertNotifications(tx, toNotifications(message, { notified: channels }, before));
  }
  return channels;
}

/** Adds a comment, also to a resolved alert. It notifies nobody. The same comment sent twice is added once. */
async function commentByHand(doing: Doing, { id, note }: WantedAct): Promise<Done> {
  const row = await lock(doing, id);
  const act = signed(doing, note);
  const before = toAlertRecord(row);
  const latest = before.transitions.findLast(({ reason }) => reason === "commented");
  if (latest?.by === act.by && latest.note === act.note) return unchanged(row.state);
  const transitions = comment(before, act);
  await storeAct(doing.tx, id, { transitions, transition: transitions.length });
  return { output: { result: "noted", state: row.state }, audit: noteOf(id, "commented", {}, note) };
}

/** Returns whether the note is new for the acknowledged alert. The same request sent twice adds the note once. */
function hasNewNote({ by, note }: PersonsAct, row: AlertRow): boolean {
  if (note === null || note.trim() === "") return false;
  const latest = toAlertRecord(row).transitions.findLast(({ reason }) => reason === "acknowledged");
  return latest?.by !== by || latest.note !== note;
}

/**
 * Resolves an alert and writes a `resolved` notification for every channel that was notified of the alert. If two
 * callers, or a caller and raise-alerts, resolve at once, one succeeds. Alerts of rules that are part of an incident and
 * were not notified by themselves resolve with it.
 */
async function resolveByPerson(doing: Doing, { id, note }: WantedAct): Promise<Done> {
  const { tx } = doing;
  const row = await lock(doing, id);
  if (row.state === "resolved") return unchanged(row.state);
  const act = signed(doing, note);
  const stored = parseDetails(row.details).message;
  const ended = resolveByHand(toAlertRecord(row), act, stored);
  const message = toResolvedMessage(stored, ended.alert, act);
  await storeResolved(tx, row, ended, { message, atMs: act.atMs });
  await resolveMembers(tx, message.members ?? [], act);
  return changed(row, note, { result: "done", state: "resolved", channels: ended.channels });
}

/**
 * Resolves one attacker of an incident: messages no longer name it, and it makes no news, until the incident ends. If no
 * other attacker is active, the alert is resolved.
 */
async function resolveAttacker(doing: Doing, wanted: WantedAct, named: string): Promise<Done> {
  const { tx, caller } = doing;
  const row = await lock(doing, wanted.id);
  const { id, state, spikeId, acknowledgedBy } = row;
  if (state === "resolved") return unchanged(state);
  const stored = spikeId === null ? null : await lockSpike(tx, spikeId);
  const known = stored?.sources?.findings ?? [];
  const found = orRefused(findAttacker(row, known, { masked: caller.masked, attacker: named }));
  if (stored === null) throw new Error(`alert ${id} has an attacker and no spike`);
  const attacker = attackerIdOf(found);
  const others = toAlertSpike(stored).attackers?.filter((one) => one.id !== attacker) ?? [];
  await addResolvedAttacker(tx, stored.id, attacker);
  if (others.length === 0) return resolveByPerson(doing, wanted);
  const { message } = parseDetails(row.details);
  const attackers = message?.attackers?.map((one) =>
    attackerIdOf(one) === attacker ? { ...one, isActive: false, isResolved: true } : one,
  );
  if (message !== null)
    await describeAlert(tx, id, { details: { message: { ...message, attackers } }, spikeId });
  return {
    output: { state, acknowledgedBy },
    audit: noteOf(id, "attacker_resolved", { attacker: maskText(attacker) }, wanted.note),
  };
}

/** Adds a silence for what the alert is about, or for one attacker of an incident. */
async function silenceAlert(doing: Doing, wanted: WantedAct, seen: ReportedAlert): Promise<Done> {
  const { tx, caller, now, afterCommit } = doing;
  const { note = "", durationMinutes = 0, silences } = wanted;
  const matchers = orRefused(matchAlert(seen, caller, wanted));
  const key = JSON.stringify(matchers);
  const known = silences?.get(key);
  if (known !== undefined) return { output: { silenceId: known }, audit: null };
  const expiresAtMs = now + durationMinutes * MINUTE_MS;
  const silence = { matchers, expiresAtMs, reason: note, by: caller.name, nowMs: now };
  const stored = await storeSilence(tx, silence);
  // A transaction that Postgres undid has stored no silence.
  afterCommit(async () => silences?.set(key, stored.id));
  return { output: { silenceId: stored.id }, audit: stored.audit };
}

/**
 * Marks the spikes of an alert. The hours of an attack leave the rule's history at the next tick of the detector; the
 * hours of everything else stay. A later mark replaces an earlier mark. Two calls at once are executed one after the
 * other.
 */
async function markAlert({ tx, now }: Doing, wanted: WantedAct, seen: ReportedAlert): Promise<Done> {
  const { id, mark, note } = wanted;
  if (mark === undefined) throw new Error(`alert ${id} is to be marked without a mark`);
  // Locks spikes before alerts, in the same order as raise-alerts, to avoid a deadlock.
  const spikes = await lockSpikesOf(tx, seen);
  await lockAlert(tx, id);
  if (spikes.length === 0)
    throw new Refusal(409, { slug: "alert-without-spike", detail: describeUnmarked(id) });
  const changing = spikes.filter((spike) => spike.mark !== mark);
  for (const spike of changing) {
    await markSpike(tx, spike.id, mark, new Date(now));
    if (mark === "attack") await forgetAttackDays(tx, spike);
  }
  if (changing.length === 0)
    return { output: { marked: { result: "unchanged", mark, before: mark, spikeIds: [] } }, audit: null };
  const spikeIds = changing.map((spike) => spike.id);
  const before = changing.findLast((spike) => spike.mark !== null)?.mark ?? null;
  return {
    output: { marked: { result: "done", mark, before, spikeIds } },
    audit: noteOf(id, "marked", { mark, before, spikeIds }, note),
  };
}

export function describeUnmarked(id: number): string {
  return `Alert ${id} has no spike that is kept. Only alerts about a rule can be marked.`;
}

/** Takes the days of an attack out of what is usual for the address that led it. */
async function forgetAttackDays(
  tx: Doing["tx"],
  { zoneId, sources, openedAt, lastActiveAt }: Awaited<ReturnType<typeof lockSpikesOf>>[number],
): Promise<void> {
  const addresses = (sources?.findings ?? []).filter(({ kind }) => kind === "rules_per_ip");
  for (const { key } of addresses)
    await forgetSourceDays(tx, zoneId, { address: key, from: openedAt, to: lastActiveAt });
}

async function lock({ tx }: Doing, id: number): Promise<AlertRow> {
  const row = await lockAlert(tx, id);
  if (row === null) throw notFound(`alert ${id}`);
  return row;
}

function signed({ caller, now }: Doing, note: string | undefined): PersonsAct {
  return { by: caller.name, note: note ?? null, atMs: now };
}

/** @throws {Refusal} with the text that says why there is none */
function orRefused<Found extends object>(found: Found | string): Found {
  if (typeof found === "string") throw new Refusal(409, { detail: found });
  return found;
}

function unchanged(state: AlertRow["state"]): Done {
  return { output: { result: "unchanged", state }, audit: null };
}

function changed(
  { id, state: from, acknowledgedBy }: AlertRow,
  note: string | undefined,
  { state, ...done }: Pick<Acted, "result" | "channels"> & Pick<AlertRow, "state">,
): Done {
  const audit = noteOf(id, state, { from, channels: done.channels }, note);
  return { output: { ...done, state, acknowledgedBy }, audit };
}

/** The note of a person is masked, because an erasure does not change audit entries. */
function noteOf(id: number, what: string, details: object, note: string | undefined) {
  const noted = note === undefined ? {} : { note: maskText(note) };
  return { action: `alert.${what}`, subject: `alert ${id}`, details: { ...details, ...noted } };
}
