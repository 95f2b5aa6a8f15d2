import { stripMarkdown } from "#lib/strip-markdown.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { isBenign } from "#model/verdict.ts";

type Verdict = Pick<NonNullable<AlertMessage["verdict"]>, "said" | "title" | "for">;

/** Sentences of a recommendation that are read, from the start. */
const MOST_CHARS = 4_000;
const KEEP = /\b(?:keep|leave)\b.{0,60}\b(?:rule|enabled|active|blocking)\b/i;
const RELAX =
  /\b(?:disable|exclude|exclusion|exception|whitelist|allowlist|log[- ]only|false[- ]positives?)\b/i;
const NEGATION = /\b(?:not|no|never|without|unless|if)\b|n't\b/i;

/**
 * Returns a line that says that the platform's advice and the verdict disagree, and why; undefined if they agree, or if the
 * advice is not clear. The text of the advice is hostile, so the line quotes none of it.
 */
export function describeDisagreement(
  advice: AlertMessage["advice"],
  verdict: Verdict | undefined,
): string | undefined {
  const advises = advice.text === null ? null : readAdvice(advice.text);
  if (verdict === undefined || advises === null) return undefined;
  const isOpposed = advises === "keep" ? isBenign(verdict) : verdict.said === "attack";
  if (!isOpposed) return undefined;
  const asked = advises === "keep" ? "keep the rule" : "relax the rule";
  const [reason] = verdict.for;
  const because =
    reason === undefined
      ? ""
      : `, because ${reason.charAt(0).toLowerCase()}${reason.slice(1).replace(/\.$/, "")}`;
  return `The platform's AI advises to ${asked}, the verdict is "${verdict.title}"${because}. The AI answers about the rule in the whole zone; the verdict counts what rose.`;
}

/** Returns what a recommendation clearly says; null if its sentences disagree or negate it. */
function readAdvice(text: string): "keep" | "relax" | null {
  const sentences = stripMarkdown(text.slice(0, MOST_CHARS))
    .split(/[.!?\n]+/)
    .filter((sentence) => !NEGATION.test(sentence));
  const isKept = sentences.some((sentence) => KEEP.test(sentence));
  const isRelaxed = sentences.some((sentence) => RELAX.test(sentence));
  if (isKept === isRelaxed) return null;
  return isKept ? "keep" : "relax";
}
