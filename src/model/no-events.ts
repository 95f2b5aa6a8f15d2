import type { AlertMessage } from "./alert-message.ts";

type EventFacts =
  | "windowMinutes"
  | "count"
  | "usual"
  | "threshold"
  | "score"
  | "peak"
  | "times"
  | "actions"
  | "top"
  | "sparkline"
  | "advice"
  | "links"
  | "howToSilence";

/** The event members of a message without events: an alert about Longwatch itself, or a digest. */
export const NO_EVENTS: Pick<AlertMessage, EventFacts> = {
  windowMinutes: 1,
  count: 0,
  usual: 0,
  threshold: 0,
  score: 0,
  peak: 0,
  times: null,
  actions: { blocked: 0, logged: 0, challenged: 0, other: 0 },
  top: { ips: [], asns: [], countries: [], paths: [], userAgents: [], ja4s: [] },
  sparkline: [],
  advice: { state: "unavailable", text: null, reason: null },
  links: [],
  howToSilence: null,
};
