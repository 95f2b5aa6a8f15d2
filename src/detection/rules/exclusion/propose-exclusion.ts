import { SECOND_MS } from "#lib/units.ts";
import type { ExclusionClause, ExclusionProposal } from "#model/advice.ts";
import { holdsIdiom, type RequestDetails } from "#model/request-facts.ts";
import { isSumRule } from "#model/rules.ts";
import type { VerdictEvidence } from "../verdict/evidence.ts";
import { holdsPlaceholder, templatesOf } from "../verdict/path-template.ts";

/** Fewer events say nothing about a rule. */
const FEWEST_EVENTS = 10;
const MOST_CLAUSES = 4;
const LEAST_SHARE = 0.04;
/** Covered by a narrow proposal, and by a partial one. */
const MOST_OF_THEM = 0.9;
const HALF = 0.5;
/** A group with more attack idioms than this is no misfire. */
const MOST_IDIOMS = 0.1;
/** Paths of a parameter that is not bound to a path, such as a cookie. */
const MANY_PATHS = 5;
const LEAST_TOGETHER = 0.2;
const MOST_TOGETHER = 10;

/** Protections other than the WAF, by the platform's names, which it does not document. */
const NO_WAF = /rate|bot|ddos|access|upload|guardian/i;

/** Returns why no exclusion may be made for a rule; null if one may. `feature` is the protection of its events. */
export function refuseRule(ruleId: string, feature = ""): string | null {
  if (ruleId === "") return "The events name no rule.";
  if (isSumRule(ruleId))
    return `Rule ${ruleId} only sums up what other rules matched. An exclusion for it would switch them all off.`;
  if (NO_WAF.test(feature)) return "The events are not of the WAF. Its exclusions do not apply to them.";
  return null;
}

/** A sampled request of the rule. Null stands for what its record does not say. */
interface Match {
  readonly template: string;
  readonly method: string | null;
  readonly parameter: string | null;
  readonly hasIdiom: boolean;
}

/**
 * Returns the narrowest exclusion that covers nine tenths of an alert's events: rule, path, method and parameter, or without the
 * parameter. Events whose record was read stand for all. Without a method, a clause is wider than what was measured to be
 * safe, so that such a proposal is at most partial.
 */
export function proposeExclusion(evidence: VerdictEvidence): ExclusionProposal {
  const ruleId = evidence.ruleId ?? mostCommon(evidence.events.map((event) => event.ruleId)) ?? "";
  const own = evidence.events.filter((event) => event.ruleId === ruleId);
  const features = own.map(({ feature = "" }) => feature);
  const toTemplate = templatesOf(own.map(({ url }) => url));
  const templateFor = (url: string) => (holdsPlaceholder(url) ? "" : toTemplate(url));
  const toMatch = ({ url }: (typeof own)[number], facts?: RequestDetails): Match => ({
    template: templateFor(url),
    method: facts?.method || null,
    parameter: facts?.parameter ?? null,
    hasIdiom: holdsIdiom({ url, matched: facts?.matched ?? null }),
  });
  const read = own.flatMap((event) => {
    const facts = evidence.requests.get(event.logId);
    return facts === undefined ? [] : [toMatch(event, facts)];
  });
  // A row of a search names no method.
  const known = [read.filter(({ method }) => method !== null), read];
  const matches = known.find(({ length }) => length >= FEWEST_EVENTS) ?? own.map((event) => toMatch(event));
  const propose = (form: ExclusionProposal["form"], { clauses, covered }: Cover): ExclusionProposal => ({
    form,
    ruleId,
    clauses,
    covered,
    events: matches.length,
    together: form === "refused" ? [] : findTogether(evidence, ruleId, clauses, templateFor),
    refusal: null,
  });
  const refuse = (refusal: string, covered = 0) => ({
    ...propose("refused", { clauses: [], covered }),
    refusal,
  });
  const refusal = refuseRule(ruleId, mostCommon(features));
  if (refusal !== null) return refuse(refusal);
  if (matches.length < FEWEST_EVENTS) return refuse(`There are fewer than ${FEWEST_EVENTS} events.`);

  const onPath = ({ template, method }: Match) => ({ ruleIds: [ruleId], template, method, parameter: null });
  const covers = [
    coverWith(matches, (match) => ({ ...onPath(match), parameter: match.parameter })),
    coverWith(matches, onPath),
  ];
  const narrow = covers.find(
    ({ covered, clauses }) => covered >= MOST_OF_THEM && clauses.every(({ method }) => method !== null),
  );
  if (narrow !== undefined) return propose("narrow", narrow);
  const partial = covers.find(({ covered }) => covered >= HALF);
  if (partial !== undefined) return propose("partial", partial);
  const wide = coverWith(matches, ({ parameter }) =>
    parameter === null ? null : { ruleIds: [ruleId], template: null, method: null, parameter },
  );
  const [clause] = wide.clauses;
  const paths = matches.filter(({ parameter }) => parameter === clause?.parameter);
  if (clause !== undefined && new Set(paths.map(({ template }) => template)).size >= MANY_PATHS)
    if (paths.length >= MOST_OF_THEM * matches.length)
      return propose("one-parameter", { clauses: [clause], covered: paths.length / matches.length });
  const { covered } = covers[1] as Cover;
  return refuse("The events are spread over too many paths and parameters, or look like attacks.", covered);
}

interface Cover {
  readonly clauses: ExclusionClause[];
  readonly covered: number;
}

/** Takes the largest groups without attack idioms until they cover nine tenths. */
function coverWith(matches: readonly Match[], toClause: (match: Match) => ExclusionClause | null): Cover {
  const clauses = new Map<string, ExclusionClause>();
  const groups = Map.groupBy(matches, (match) => {
    const clause = toClause(match);
    const key = JSON.stringify(clause);
    if (clause !== null) clauses.set(key, clause);
    return key;
  });
  const cover: { clauses: ExclusionClause[]; covered: number } = { clauses: [], covered: 0 };
  for (const [key, group] of [...groups].sort(([, one], [, other]) => other.length - one.length)) {
    const share = group.length / matches.length;
    if (cover.covered >= MOST_OF_THEM || cover.clauses.length === MOST_CLAUSES || share < LEAST_SHARE) break;
    const clause = clauses.get(key);
    // The template of the first page is '/', and that of no URL is empty.
    const isWide = clause === undefined || ((clause.template ?? "").length < 2 && clause.parameter === null);
    const idioms = group.filter((match) => match.hasIdiom).length;
    if (isWide || clause.template === "" || idioms > MOST_IDIOMS * group.length) continue;
    cover.clauses.push(clause);
    cover.covered += share;
  }
  return { ...cover, covered: Math.min(1, cover.covered) };
}

/**
 * Returns the rules that match the same requests, by share of the requests. Without events of other rules, it is the share of
 * the addresses that triggered the other rule on the same path within a day.
 */
function findTogether(
  { events, nearby, requests }: VerdictEvidence,
  ruleId: string,
  clauses: readonly ExclusionClause[],
  templateFor: (url: string) => string,
): ExclusionProposal["together"] {
  const isOn = (template: string) => clauses.some((clause) => isWithin(clause.template, template));
  const others = events.some((event) => event.ruleId !== ruleId);
  const sightings = others
    ? events.map(({ ip, url, at, ...event }) => ({
        request: JSON.stringify([ip, url, Math.floor(at / SECOND_MS)]),
        ruleId: event.ruleId,
        template: templateFor(url),
        parameter: requests.get(event.logId)?.parameter ?? null,
      }))
    : nearby.map(({ ip, ...near }) => ({ ...near, request: ip, parameter: null }));
  const byRule = Map.groupBy(
    sightings.filter(({ template }) => isOn(template)),
    (seen) => seen.ruleId,
  );
  const own = new Set(byRule.get(ruleId)?.map(({ request }) => request));
  const together = [...byRule].flatMap(([other, seen]) => {
    if (other === ruleId || refuseRule(other) !== null) return [];
    const shared = seen.filter(({ request }) => own.has(request));
    const share = new Set(shared.map(({ request }) => request)).size / own.size;
    return share >= LEAST_TOGETHER
      ? [{ ruleId: other, parameter: mostCommon(shared.map(({ parameter }) => parameter)) ?? null, share }]
      : [];
  });
  return together.sort((one, other) => other.share - one.share).slice(0, MOST_TOGETHER);
}

/** Templates of single URLs have names where those of many have `{slug}`. */
function isWithin(wide: string | null, template: string): boolean {
  if (wide === null) return true;
  const [wanted, found] = [wide.split("/"), template.split("/")];
  return (
    wanted.length === found.length &&
    wanted.every((segment, at) => segment === found[at] || (at > 1 && segment === "{slug}"))
  );
}

function mostCommon<Value>(values: readonly Value[]): Value | undefined {
  const groups = [...Map.groupBy(values, (value) => value)];
  return groups.sort(([, one], [, other]) => other.length - one.length)[0]?.[0];
}
