import { type Actor, BROWSERS, type Cast } from "./actors.ts";
import type { Random } from "./random.ts";
import { RULES, type Rule, ruleById } from "./rules.ts";
import { STORIES, type Story, type StoryName } from "./stories.ts";

/** The traits that all events of one kind of attack or nuisance share. */
interface Profile {
  /**
   * The number of clients; `all`: those of everyday traffic; `browsers`: visitors; 0: the script only changes the zone's
   * other events.
   */
  readonly clients: number | "all" | "browsers";
  /** The number of different rules; `usual`: those of everyday traffic; `given`: the rule of the script. Left out: the story's. */
  readonly rules?: number | "usual" | "given";
  /** A value that all clients share; `tool`: also those of every other attacker of this kind. */
  readonly shared?: "agent" | "network" | "subnet" | "tool";
  /** Left out: the clients alternate. Otherwise each client in turn sends every event for this long. */
  readonly turnMs?: number;
  /** Left out: 1. Otherwise so many attackers of this kind begin one after the other, and overlap. */
  readonly attackers?: number;
  /** The events are logged in the first half and blocked in the second. */
  readonly isFlip?: boolean;
  /** All events are on one path. */
  readonly isOnePath?: boolean;
  /** The clients are the same in every script of the zone. */
  readonly isFamiliar?: boolean;
  /** The clients are visitors: they have browsers and trigger no other rules. */
  readonly isVisitor?: boolean;
  /** The request of every event, with headers. */
  readonly story?: StoryName;
  /** Used if the script leaves them out. */
  readonly rate: string;
  readonly duration: string;
}

const TURN_MS = 10 * 60_000;

/** Attacks that no single rule shows, harmless things that look like them, and changes of a rule or of the platform. */
const PROFILES = {
  scanner: { clients: 1, rules: 40, rate: "15/m", duration: "12m" },
  botnet: { clients: 300, rules: 25, shared: "agent", rate: "20/m", duration: "30m" },
  network: { clients: 100, rules: 10, shared: "network", rate: "10/m", duration: "30m" },
  url: { clients: 200, rules: 4, isOnePath: true, rate: "10/m", duration: "45m" },
  rise: { clients: "all", rules: "usual", rate: "2/s", duration: "1h" },
  "slow-scan": { clients: 1, rules: 30, rate: "1/m", duration: "4h" },
  "rotating-scanner": {
    clients: 6,
    rules: 40,
    shared: "subnet",
    turnMs: TURN_MS,
    rate: "15/m",
    duration: "1h",
  },
  "roaming-scanner": {
    clients: 6,
    rules: 40,
    shared: "agent",
    turnMs: TURN_MS,
    rate: "15/m",
    duration: "1h",
  },
  "four-scanners": { clients: 1, rules: 40, shared: "tool", attackers: 4, rate: "7.5/m", duration: "1h" },
  "two-botnets": { clients: 300, rules: 25, shared: "agent", attackers: 2, rate: "20/m", duration: "1h" },
  crawler: { clients: 20, rules: 3, shared: "agent", isFamiliar: true, rate: "20/h", duration: "24h" },
  monitor: { clients: 3, rules: 1, isOnePath: true, isFamiliar: true, rate: "1/m", duration: "24h" },
  "shared-address": { clients: 1, rules: "usual", isFamiliar: true, rate: "15/h", duration: "10h" },
  "owner-scan": { clients: 1, rules: 30, isFamiliar: true, rate: "8/m", duration: "20m" },
  background: { clients: 30, rules: 4, rate: "15/h", duration: "24h" },
  campaign: { clients: 20, rules: 3, shared: "agent", rate: "40/h", duration: "1h" },
  "broken-client": { clients: 1, rules: 2, isOnePath: true, rate: "7/m", duration: "30m" },
  marketing: { clients: "all", rules: 4, isOnePath: true, rate: "30/m", duration: "2h" },
  "browser-update": { clients: "all", rules: "usual", shared: "agent", rate: "10/m", duration: "24h" },
  deployment: { clients: "all", rules: "given", rate: "20/m", duration: "4h" },
  flip: { clients: 30, rules: "given", isFlip: true, rate: "20/h", duration: "24h" },
  silence: { clients: 0, rules: "given", rate: "1/h", duration: "6h" },
  outage: { clients: 0, rules: 0, rate: "1/h", duration: "40m" },
  "misfire-form": { clients: "browsers", story: "form", rate: "90/h", duration: "24h" },
  "misfire-rich-text": { clients: "browsers", story: "rich-text", rate: "180/h", duration: "24h" },
  "misfire-search": { clients: "browsers", story: "search", rate: "120/h", duration: "24h" },
  "misfire-cookie": { clients: "browsers", story: "cookie", rate: "240/h", duration: "24h" },
  "misfire-upload": { clients: "browsers", story: "upload", rate: "60/h", duration: "24h" },
  "misfire-api": { clients: "browsers", story: "api", rate: "240/h", duration: "24h" },
  "misfire-partner": {
    clients: 2,
    isFamiliar: true,
    isVisitor: true,
    story: "partner",
    rate: "60/h",
    duration: "24h",
  },
  "misfire-back-office": {
    clients: 4,
    isFamiliar: true,
    isVisitor: true,
    story: "back-office",
    rate: "40/h",
    duration: "8h",
  },
  "misfire-campaign": { clients: "browsers", story: "campaign", rate: "2/m", duration: "3h" },
  "stuck-client": { clients: 1, story: "repeat", rate: "6/m", duration: "2h" },
  "search-engine": { clients: 8, shared: "subnet", story: "crawler", rate: "1/m", duration: "6h" },
  probe: { clients: 1, story: "probe", rate: "1/s", duration: "3m" },
  exploit: { clients: 4, shared: "tool", story: "exploit", rate: "10/m", duration: "30m" },
  "browser-botnet": { clients: 150, story: "injection", rate: "20/m", duration: "1h" },
  "credential-stuffing": { clients: 200, shared: "agent", story: "stuffing", rate: "1/s", duration: "20m" },
  "deep-scan": { clients: 1, shared: "tool", story: "deep-scan", rate: "30/m", duration: "40m" },
} as const satisfies Record<string, Profile>;

export type ProfiledKind = keyof typeof PROFILES;
export const ATTACK_KINDS = ["rule", ...(Object.keys(PROFILES) as ProfiledKind[])] as const;
export type AttackKind = (typeof ATTACK_KINDS)[number];

export function profileOf(kind: AttackKind): Profile {
  return kind === "rule" ? { clients: 6, rules: "given", rate: "40/s", duration: "10m" } : PROFILES[kind];
}

/** Returns the requests that the kind sends; null if its events are drawn rule by rule. */
export function storyOf(kind: AttackKind): Story | null {
  const { story } = profileOf(kind);
  return story === undefined ? null : STORIES[story];
}

/** The clients and rules of a profiled attack. */
export interface Band {
  readonly actors: readonly Actor[];
  readonly rules: readonly Rule[];
  readonly isOnePath: boolean;
}

/** One path is the same for rules of one family only. */
const PATH_RULES = ["942100", "942200", "942440", "942190"];
const FIRST_INVENTED = 930_500;
/** Everyday traffic comes mostly from the first clients of the cast. */
const UNFAMILIAR_FROM = 0.75;

/** Chooses clients and rules. `random` is seeded with the attack, or with the zone for familiar clients. */
export function chooseBand(kind: ProfiledKind, ruleId: string, cast: Cast, random: Random): Band {
  const { clients, rules = 0, shared, isOnePath = false, isVisitor = false }: Profile = PROFILES[kind];
  return {
    actors:
      isVisitor || clients === "browsers"
        ? chooseVisitors(clients, cast, random)
        : chooseActors(clients, shared, cast, random),
    rules: chooseRules(rules, ruleId, isOnePath),
    isOnePath,
  };
}

/** Returns visitors with addresses of their own: each address of the cast triggers many rules a day. */
function chooseVisitors(clients: Profile["clients"], { actors }: Cast, random: Random): readonly Actor[] {
  const browsers = actors.filter(({ agent }) => agent < BROWSERS);
  const visitors = browsers.map((actor) => ({
    ...actor,
    ip: actor.ip.replace(/^\d+(?=\.)/, "86").replace(/^2a0/, "2a1"),
  }));
  if (typeof clients !== "number") return visitors;
  const first = random.below(visitors.length - clients);
  return visitors.slice(first, first + clients);
}

function chooseActors(
  clients: number | "all",
  shared: Profile["shared"],
  { actors, hostileAgentsFrom, scannerAgent }: Cast,
  random: Random,
): readonly Actor[] {
  const first = Math.floor(actors.length * UNFAMILIAR_FROM);
  const place = random.below(actors.length - first);
  const agent = random.below(hostileAgentsFrom);
  const asn = String(64_500 + random.below(500));
  if (clients === "all") return shared === "agent" ? actors.map((actor) => ({ ...actor, agent })) : actors;
  const base = actors.slice(first + place).find(({ ip }) => ip.includes(".")) ?? actors[0];
  const subnet = base?.ip.replace(/\.\d+$/, "");
  return Array.from({ length: clients }, (_, i) => {
    const actor = actors[first + ((place + i) % (actors.length - first))] as Actor;
    if (shared === "agent") return { ...actor, agent };
    if (shared === "tool") return { ...actor, agent: scannerAgent };
    if (shared === "subnet") return { ...(base ?? actor), ip: `${subnet}.${i + 1}` };
    return shared === "network" ? { ...actor, asn } : actor;
  });
}

function chooseRules(
  rules: NonNullable<Profile["rules"]>,
  ruleId: string,
  isOnePath: boolean,
): readonly Rule[] {
  if (rules === "given") return [ruleById(ruleId)];
  if (rules === "usual") return RULES.flatMap((rule) => Array.from({ length: rule.weight }, () => rule));
  if (isOnePath) return PATH_RULES.slice(0, rules).map(ruleById);
  const known = RULES.slice(0, rules);
  const invented = Array.from({ length: rules - known.length }, (_, i) =>
    ruleById(String(FIRST_INVENTED + i)),
  );
  return [...known, ...invented];
}
