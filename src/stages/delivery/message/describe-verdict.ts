import { formatNumber } from "#lib/format.ts";
import { toLine } from "#lib/plain-text.ts";
import { classifyAction } from "#model/action-class.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { ACTION_CLASSES, type VerdictLook } from "#model/kinds.ts";
import { countThrough } from "#model/verdict.ts";
import { sayOdds } from "#model/verdict-words.ts";
import { formatTime, isNews } from "./describe-alert.ts";

type Verdict = NonNullable<AlertMessage["verdict"]>;

/** A line of a message. The label is ours. The text is harmless, but still has to be escaped for the receiver's markup. */
export interface OutlineRow {
  readonly label: string;
  readonly text: string;
  /** True for what is copied or quoted as it is: a command, or the text of a request. */
  readonly isCode?: boolean;
}

const LABELS: Readonly<Record<VerdictLook, string>> = {
  first: "Verdict",
  "half-hour": "Verdict after 30 minutes",
  "six-hours": "Verdict after 6 hours",
  day: "Verdict after 24 hours",
};

/**
 * Returns what a person reads first: the verdict with its reasons, what got through, one request, who sends them and the next
 * step. Empty if there is no verdict. Texts longer than `maxChars` are cut.
 */
export function outlineVerdict({ verdict, marked = "" }: AlertMessage, maxChars: number): OutlineRow[] {
  if (verdict === undefined) return [];
  // Reasons of an unclear verdict are those of the likeliest class.
  const of = verdict.said === "unclear" ? ` ${verdict.likeliest.replace("-", " ")}` : "";
  const rows = [
    { label: LABELS[verdict.look], text: describeOdds(verdict, of) },
    { label: `For${of}`, text: verdict.for.join(" ") },
    { label: `Against${of}`, text: verdict.against ?? "" },
    { label: "Not known", text: verdict.missing.join(", ") },
    { label: "Marked before", text: marked },
    { label: "Got through", text: describeThrough(verdict) },
    ...outlineSample(verdict),
    { label: "Who", text: verdict.who },
    { label: "Next step", text: verdict.nextStep },
  ];
  return rows.map((row) => ({ ...row, text: toLine(row.text, maxChars) })).filter(({ text }) => text !== "");
}

function describeOdds({ title, odds, crawler }: Verdict, of: string): string {
  const name = crawler === null ? "" : `, ${crawler}`;
  return `${title}${name} (odds${of === "" ? "" : ` of${of}`} ${sayOdds(odds)})`;
}

function describeThrough({ counts, since }: Verdict): string {
  if (counts.events === 0) return "";
  const through = countThrough(counts);
  const share =
    through === 0 ? "nothing" : `${formatNumber(through)} of ${formatNumber(counts.events)} events`;
  const each = ACTION_CLASSES.filter((action) => counts[action] > 0);
  const counted = each.map((action) => `${formatNumber(counts[action])} ${action}`).join(", ");
  return `${share} since ${formatTime(since)} (${counted})`;
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

/** Returns the commands that a person may copy: to acknowledge the alert, and to silence its address or rule. */
export function outlineCommands({ alertId, state, kind, digest, howToSilence }: AlertMessage): OutlineRow[] {
  const isOpen = state === "firing" && !isNews({ kind }) && alertId > 0 && digest === undefined;
  return [
    { label: "Acknowledge", text: isOpen ? `longwatch alerts ack ${alertId}` : "", isCode: true },
    { label: "Silence", text: toLine(howToSilence ?? "", 400), isCode: true },
  ].filter(({ text }) => text !== "");
}
