import { formatDuration, formatNumber, many } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { classifyAction } from "#model/action-class.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { ACTION_CLASSES } from "#model/kinds.ts";
import { countRequests, countThrough, dueVerdictTime, VERDICT_AFTER_MS } from "#model/verdict.ts";
import { describeBackground, formatOdds } from "#model/words.ts";
import { formatTime, isNews } from "./describe-alert.ts";

type Verdict = NonNullable<AlertMessage["verdict"]>;

/** A line of a message. The label is ours. The text is harmless, but still has to be escaped for the receiver's markup. */
export interface OutlineRow {
  readonly label: string;
  readonly text: string;
  /** True for what is copied or quoted as it is: a command, or the text of a request. */
  readonly isCode?: boolean;
}

/** Returns the verdict and the commands of an alert that is not over. */
export function outlineOpen(
  message: AlertMessage,
  isOpen: boolean,
  maxChars: number,
): { readonly verdict: OutlineRow[]; readonly commands: OutlineRow[] } {
  if (!isOpen) return { verdict: [], commands: [] };
  return { verdict: outlineVerdict(message, maxChars), commands: outlineCommands(message) };
}

/**
 * Returns what a person reads first: the verdict with its reasons, what got through, one request, who sends them and the next
 * step. Empty if there is no verdict. Texts longer than `maxChars` are cut.
 */
export function outlineVerdict(message: AlertMessage, maxChars: number): OutlineRow[] {
  const { verdict, marked = "" } = message;
  if (verdict === undefined) return [];
  // Reasons of an unclear verdict are those of the likeliest class.
  const of = verdict.said === "unclear" ? ` ${verdict.likeliest.replace("-", " ")}` : "";
  const rows = [
    { label: "Changed", text: describeTurn(message) },
    { label: `${describeAge(verdict, message)}${describeMissed(message)}`, text: describeOdds(verdict, of) },
    { label: `For${of}`, text: verdict.for.join(" ") },
    { label: `Against${of}`, text: verdict.against ?? "" },
    { label: "Not known", text: verdict.missing.join(", ") },
    { label: "Marked before", text: marked },
    { label: "Got through", text: describeThrough(message) },
    { label: "Usually", text: describeBackground(verdict.background) },
    ...outlineSample(verdict),
    { label: "Who", text: verdict.who },
    { label: "Next step", text: verdict.nextStep },
    { label: "Exclusion", text: message.exclusion?.reason ?? "" },
    { label: "Advice", text: message.disagreement ?? "" },
  ];
  return rows.map((row) => ({ ...row, text: toLine(row.text, maxChars) })).filter(({ text }) => text !== "");
}

function describeOdds({ title, odds, crawler }: Verdict, of: string): string {
  const name = crawler === null ? "" : `, ${crawler}`;
  return `${title}${name} (odds${of === "" ? "" : ` of${of}`} ${formatOdds(odds)})`;
}

/** Returns how long after the alert's start the verdict was judged: at its time, or later for a message that waited for a newer one. */
function describeAge({ look, judgedAt }: Verdict, { startedAt }: AlertMessage): string {
  if (look === "first") return "Verdict";
  const isOfLook = dueVerdictTime(startedAt, judgedAt) === look;
  const minutes = Math.floor((isOfLook ? judgedAt - startedAt : VERDICT_AFTER_MS[look]) / MINUTE_MS);
  return `Verdict after ${minutes < 120 ? many(minutes, "minute") : many(Math.floor(minutes / 60), "hour")}`;
}

/** Returns how many attackers came after the verdict was judged: it counts none of their requests. */
function describeMissed({ verdict, attackers = [] }: AlertMessage): string {
  const named = attackers.filter(({ isActive, role }) => isActive && role !== "facet");
  // An attacker is named at the end of its first minute, and judged in it.
  const later = named.filter(
    ({ startedAt }) => startedAt - MINUTE_MS > (verdict?.judgedAt ?? Number.MAX_VALUE),
  );
  return later.length === 0 ? "" : `, before ${later.length} of the ${named.length} attackers came`;
}

/** Returns `was: Probably an attack; now: Misfire, because all of 85 requests carry a session`. */
function describeTurn({ was, verdict }: AlertMessage): string {
  if (was === undefined || verdict === undefined) return "";
  const [reason = ""] = verdict.for;
  const because =
    reason === "" ? "" : `, because ${reason.charAt(0).toLowerCase()}${reason.slice(1).replace(/\.$/, "")}`;
  return `was: ${was}; now: ${verdict.title}${because}`;
}

/** Returns how many requests got through in which time, and how many nobody knows it of. */
function describeThrough({
  verdict,
  unknownActions = [],
}: Pick<AlertMessage, "verdict" | "unknownActions">): string {
  if (verdict === undefined) return "";
  const { counts, since, judgedAt } = verdict;
  const requests = countRequests(counts);
  if (requests === 0) return "";
  const through = countThrough(counts);
  const isOneDay = Math.floor(since / DAY_MS) === Math.floor(judgedAt / DAY_MS);
  const until = formatTime(judgedAt, isOneDay ? "clock" : "full");
  const span = `in ${formatDuration(Math.max(judgedAt - since, MINUTE_MS))}, ${formatTime(since).replace(" UTC", "")} to ${until}`;
  const known = ACTION_CLASSES.filter((action) => action !== "other" && counts[action] > 0);
  const counted = known.map((action) => `${formatNumber(counts[action])} ${action}`).join(", ");
  const words = unknownActions.map((word) => toLine(word, 40)).join(", ");
  const unknown =
    counts.other === 0
      ? ""
      : `; the fate of ${formatNumber(counts.other)} is not known${words === "" ? "" : `, the platform's action is ${words}`}`;
  return `${through === 0 ? "none" : formatNumber(through)} of ${many(requests, "request")} ${span}${counted === "" ? "" : ` (${counted})`}${unknown}`;
}

/** Address, URL and matched text come from the request. */
function outlineSample({ sample }: Verdict): OutlineRow[] {
  if (sample === null) return [];
  const { ip, method, url, ruleId, parameter, matched } = sample;
  const found = [parameter, matched].filter((part) => part !== null && part !== "").join(" = ");
  return [
    { label: `Request, ${classifyAction(sample.action)}`, text: `${ip} ${method} ${url}`, isCode: true },
    { label: "Matched", text: found === "" ? "" : `rule ${ruleId}: ${found}`, isCode: true },
  ];
}

/**
 * Returns the commands that a person may copy: to acknowledge the alert, to see what an exclusion would have silenced, and to silence
 * its address or rule. The one of the exclusion holds the path of a request.
 */
function outlineCommands({
  alertId,
  state,
  kind,
  digest,
  howToSilence,
  exclusion,
}: AlertMessage): OutlineRow[] {
  const isOpen = state === "firing" && !isNews({ kind }) && alertId > 0 && digest === undefined;
  return [
    { label: "Acknowledge", text: isOpen ? `longwatch alerts ack ${alertId}` : "", isCode: true },
    { label: "Try the exclusion", text: toLine(exclusion?.command ?? "", 500), isCode: true },
    { label: "Silence", text: toLine(howToSilence ?? "", 400), isCode: true },
  ].filter(({ text }) => text !== "");
}
