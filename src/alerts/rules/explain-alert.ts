import { MINUTE_MS } from "#lib/units.ts";
import {
  type NotifyReason,
  type RouteVerdict,
  SEVERITIES,
  type Severity,
  SPIKE_KINDS,
} from "#model/kinds.ts";
import { matchesSubject, type Subject, type SubjectMatchers } from "#model/subject.ts";
import { ENDINGS } from "#model/words.ts";
import { type AlertRecord, isMuted } from "./alert-record.ts";
import type { AlertSpike } from "./alert-spike.ts";
import { type Context, createAssessor } from "./assess.ts";
import { decide } from "./decide.ts";
import {
  findChannelsInQuietHours,
  findInhibition,
  isInForce,
  pickRoutes,
  planRoute,
} from "./routing/plan-route.ts";
import type { QuietHours, Route, Timing } from "./routing/routing.ts";
import { routeSelf } from "./self-alert.ts";
import { toSituation } from "./verdict-effects.ts";

interface ExplainedRoute {
  /** `route.routes[0]`. */
  readonly path: string;
  /** `skipped`: an earlier route has taken the alert, or the route above does not match. */
  readonly verdict: RouteVerdict;
  /** The members of the matchers that do not match. */
  readonly mismatches: readonly (keyof SubjectMatchers)[];
  readonly channels: readonly string[];
  readonly continues: boolean;
}

export interface ExplainedQuietHours {
  readonly path: string;
  readonly verdict:
    | "holds"
    | "not now"
    | "no match"
    | "not critical alerts"
    | "not these channels"
    | "not Longwatch's own";
  readonly channels: readonly string[];
}

/** Recipients of one transition. */
interface ExplainedTransition {
  readonly reason: NotifyReason;
  readonly severity: Severity;
  readonly notified: readonly string[];
  /** Those whose message changes in place. */
  readonly updated: readonly string[];
  /** Those that are notified once `group_interval` is over. */
  readonly waiting: readonly string[];
  /** Those that are notified after their quiet hours. */
  readonly held: readonly string[];
}

export interface ExplainedAlert {
  readonly routes: readonly ExplainedRoute[];
  readonly quietHours: readonly ExplainedQuietHours[];
  /** `inhibit[0]`. */
  readonly inhibitedBy: string | null;
  readonly silencedBy: number | null;
  readonly timing: Timing;
  readonly repeatIntervalMs: Readonly<Record<string, number>>;
  readonly transitions: readonly ExplainedTransition[];
}

/** Says of an alert that does not exist what the service would decide, by the functions that decide in the service. */
export function explainAlert(subject: Subject, context: Context): ExplainedAlert {
  const { routing, nowMs } = context;
  const plan = planRoute(routing, subject, nowMs);
  const inhibition = findInhibition(routing.inhibitions, subject, context.firing);
  const transitions =
    subject.kind === "self"
      ? [explainSelf(subject, context)]
      : simulate(subject, context, plan.timing.groupWaitMs);
  const { silencedBy } = createAssessor(context)(toSpike(subject, nowMs, 0));
  const self = subject.kind === "self" ? routeSelf(context, subject) : null;
  return {
    routes: explainRoutes(routing.root, subject),
    quietHours: explainQuietHours(routing.quietHours, subject, [...plan.channels, ...plan.held], nowMs),
    inhibitedBy:
      inhibition === null || self !== null ? null : `inhibit[${routing.inhibitions.indexOf(inhibition)}]`,
    silencedBy: self === null ? silencedBy : self.silencedBy,
    timing: plan.timing,
    repeatIntervalMs: Object.fromEntries(plan.repeatIntervalMs),
    transitions,
  };
}

function explainRoutes(root: Route, subject: Subject): ExplainedRoute[] {
  const visits = new Map<Route, boolean>();
  const picked = new Set(pickRoutes(root, subject, (route, isMatch) => visits.set(route, isMatch)));
  visits.set(root, true);
  const walk = (path: string, route: Route): ExplainedRoute[] => {
    const isMatch = visits.get(route);
    const verdict =
      isMatch === undefined ? "skipped" : isMatch ? (picked.has(route) ? "taken" : "passed on") : "no match";
    const mismatches = verdict === "no match" ? findMismatches(route.matchers, subject) : [];
    const { channels, continue: continues } = route;
    const children = route.routes.flatMap((child, index) => walk(`${path}.routes[${index}]`, child));
    return [{ path, verdict, mismatches, channels, continues }, ...children];
  };
  return walk("route", root);
}

function findMismatches(matchers: SubjectMatchers, subject: Subject): (keyof SubjectMatchers)[] {
  const names = Object.keys(matchers) as (keyof SubjectMatchers)[];
  return names.filter((name) => !matchesSubject({ [name]: matchers[name] }, subject));
}

function explainQuietHours(
  all: readonly QuietHours[],
  subject: Subject,
  channels: readonly string[],
  nowMs: number,
): ExplainedQuietHours[] {
  return all.map((hours, index) => {
    const held = [...findChannelsInQuietHours([hours], subject, channels, nowMs)];
    const verdict =
      subject.kind === "self"
        ? "not Longwatch's own"
        : held.length > 0
          ? "holds"
          : !matchesSubject(hours.matchers, subject)
            ? "no match"
            : !isInForce(hours, nowMs)
              ? "not now"
              : subject.severity === "critical" && hours.critical === "tell"
                ? "not critical alerts"
                : "not these channels";
    return { path: `quiet_hours[${index}]`, verdict, channels: verdict === "holds" ? held : [] };
  });
}

function explainSelf(subject: Subject, context: Context): ExplainedTransition {
  const { channels, silencedBy } = routeSelf(context, subject);
  const notified = silencedBy === null ? channels : [];
  return { reason: "first", severity: subject.severity, notified, updated: [], waiting: [], held: [] };
}

/** The alert's beginning, a rise a minute later where there can be one, and its end. */
function simulate(subject: Subject, context: Context, groupWaitMs: number): ExplainedTransition[] {
  const graver = SEVERITIES[SEVERITIES.indexOf(subject.severity) + 1];
  const first = step(toSpike(subject, context.nowMs, groupWaitMs), null, context);
  const later = { ...context, nowMs: context.nowMs + MINUTE_MS };
  const rise =
    graver === undefined
      ? null
      : step(toSpike({ ...subject, severity: graver }, context.nowMs, groupWaitMs), first.alert, later);
  const before = rise?.alert ?? first.alert;
  const end = { ...later, nowMs: later.nowMs + MINUTE_MS };
  const closed = { ...toSpike(subject, context.nowMs, groupWaitMs), closedAtMs: end.nowMs, windowCount: 0 };
  const over = step(closed, before, end);
  return [first, ...(rise === null ? [] : [rise]), over].flatMap(({ shown }) => shown ?? []);
}

function step(spike: AlertSpike, before: AlertRecord | null, context: Context) {
  const situation = toSituation(createAssessor(context)(spike), before);
  const decision = decide(situation, context);
  if (decision === null) return { alert: before, shown: null };
  const { alert, reason, notified, updated, waiting } = decision;
  const isHeld = !ENDINGS.some((end) => end === reason) && !isMuted(situation.mute);
  const held = isHeld ? situation.route.held : [];
  const shown: ExplainedTransition = { reason, severity: spike.severity, notified, updated, waiting, held };
  return { alert, shown };
}

/** A spike of this subject whose first message has waited for the group until now. */
function toSpike(
  { kind, zoneId, ruleId, severity }: Subject,
  nowMs: number,
  groupWaitMs: number,
): AlertSpike {
  const top = { ip: [], asn: [], country: [], path: [], ua: [], ja4: [], action: [] };
  return {
    id: 1,
    zoneId: zoneId ?? 0,
    ruleId: ruleId ?? "",
    kind: SPIKE_KINDS.find((one) => one === kind) ?? "spike",
    severity,
    openedAtMs: nowMs - groupWaitMs,
    closedAtMs: null,
    windowMinutes: 1,
    windowCount: 1,
    baseline: 0,
    threshold: 1,
    score: 1,
    peak: 1,
    evidence: { top, sparkline: [] },
  };
}
