/** Draws one request and its event. */
import type { Actor, Cast } from "./actors.ts";
import { HOSTILE, PATHS, PAYLOADS, type UrlBook } from "./payloads.ts";
import { hashText, type Random } from "./random.ts";
import { type Action, type Rule, ruleById } from "./rules.ts";
import { SENDERS, type Story } from "./stories.ts";

/** 128 bits, most significant first. */
type Words = readonly [number, number, number, number];

/** The origin of an event. Together with the event's minute it is the key from which all other values follow. */
export interface EventKey {
  /** 0 for everyday traffic, otherwise the attack's position plus one. */
  readonly source: number;
  /** Everyday traffic: rule position * 65536 + ordinal in the minute. Attack: ordinal in the attack. */
  readonly slot: number;
}

/** An event before it is rendered: every dimension, and the values of its log record. */
export interface Draft extends EventKey {
  readonly at: number;
  readonly visibleAt: number;
  /** The logId. The words sort like its text. */
  readonly id: Words;
  readonly rule: Rule;
  readonly action: Action;
  readonly ip: string;
  readonly asn: string;
  readonly country: string;
  readonly ja4: string;
  readonly ua: string;
  readonly url: string;
  readonly host: string;
  readonly method: string;
  /** The matched text, raw. */
  readonly match: string;
  /** The request body, url-encoded, or null. */
  readonly body: string | null;
  readonly requestId: Words;
  /** The values of a story's record. They replace those of the rule's family. */
  readonly trigger?: string;
  readonly contentType?: string | null;
  readonly headers?: readonly { readonly Name: string; readonly Value: string }[];
}

export interface Lateness {
  /** Share of events that become visible minutes late. */
  readonly share: number;
  readonly maxMs: number;
}

const HOSTILE_SHARE = 0.03;
const HOSTILE_AGENT_SHARE = 0.012;
const SLOW_SHARE = 0.1;
const VARIANTS = 64;
const LONE_SURROGATES = /\p{Surrogate}/gu;

function drawId(random: Random): Draft["id"] {
  const first = random.next();
  const second = ((random.next() & 0xffff0fff) | 0x4000) >>> 0;
  const third = ((random.next() & 0x3fffffff) | 0x80000000) >>> 0;
  return [first, second, third, random.next()];
}

function drawLateness(random: Random, lateness: Lateness): number {
  const share = random.fraction();
  const spread = random.fraction();
  if (share < lateness.share)
    return Math.round(Math.min(60_000, lateness.maxMs) * (1 - spread) + lateness.maxMs * spread);
  if (share < lateness.share + SLOW_SHARE) return Math.round(2_000 + spread * 26_000);
  return Math.round(spread * 2_000);
}

function drawAction(random: Random, rule: Rule): Action {
  const share = random.fraction();
  if (share < rule.blockShare) return "block";
  return share < rule.blockShare + rule.logShare ? "log" : "challenge";
}

interface DraftContext {
  readonly random: Random;
  readonly cast: Cast;
  readonly urlOf: UrlBook;
  readonly lateness: Lateness;
  readonly zoneId: number;
}

/** The few clients and paths of an attack. Absent for everyday traffic. */
export interface Crew {
  readonly actors: readonly Actor[];
  /** Left out: any path and payload. */
  readonly path?: number;
  readonly payload?: number;
}

function drawActor(random: Random, cast: Cast, crew: Crew | undefined): Actor {
  const skewed = random.fraction() ** 2;
  const actors = crew?.actors ?? cast.actors;
  const actor = actors[Math.floor(skewed * actors.length)];
  if (actor === undefined) throw new RangeError("the cast is empty");
  return actor;
}

/**
 * Draws one event. `random` must have been reseeded with the event's key. The order of the draws determines the
 * emulator's past and must not change. `at` is given for attacks, else drawn within the minute.
 */
export function drawEvent(
  context: DraftContext,
  key: EventKey,
  rule: Rule,
  time: { minuteMs: number } | { at: number },
  crew?: Crew,
): Draft {
  const { random, cast, urlOf, zoneId } = context;
  const id = drawId(random);
  const offset = random.below(60_000);
  const at = "at" in time ? time.at : time.minuteMs + offset;
  const visibleAt = at + drawLateness(random, context.lateness);
  const action = drawAction(random, rule);
  const actor = drawActor(random, cast, crew);
  const agentShare = random.fraction();
  const hostileAgents = cast.userAgents.length - cast.hostileAgentsFrom;
  const agentIndex =
    agentShare < HOSTILE_AGENT_SHARE ? cast.hostileAgentsFrom + random.below(hostileAgents) : actor.agent;
  const agent = cast.userAgents[agentIndex] ?? { text: "", ja4: "" };

  const hostShare = random.below(3);
  const path = random.below(PATHS[rule.family].length);
  const payload = random.below(PAYLOADS[rule.family].length);
  const variant = Math.floor(VARIANTS * random.fraction() ** 2);
  const hostile = random.fraction() < HOSTILE_SHARE ? random.below(HOSTILE.length) : -1;
  const place = random.below(3);
  const chosen = {
    path: crew?.path ?? path,
    payload: crew?.payload ?? payload,
    variant: crew === undefined ? variant : variant % 4,
  };
  const { host, url } = urlOf({
    zoneId,
    host: hostShare,
    family: rule.family,
    ...chosen,
    hostile: place === 0 ? hostile : -1,
  });
  const plain = PAYLOADS[rule.family][chosen.payload] ?? "";
  const method = random.fraction() < 0.7 ? "GET" : random.pick(["POST", "POST", "PUT", "HEAD"]);
  const bodyText = place === 2 && hostile >= 0 ? (HOSTILE[hostile] ?? "") : plain;
  return {
    ...key,
    at,
    visibleAt,
    id,
    rule,
    action,
    ip: actor.ip,
    asn: actor.asn,
    country: actor.country,
    ja4: agent.ja4,
    ua: agent.text,
    url,
    host,
    method,
    match: place === 1 && hostile >= 0 ? (HOSTILE[hostile] ?? "") : plain,
    body:
      method === "POST" || method === "PUT"
        ? `q=${encodeURIComponent(bodyText.replaceAll(LONE_SURROGATES, "\ufffd"))}`
        : null,
    requestId: [random.next(), random.next(), random.next(), random.next()],
  };
}

/** Each 16 bits as text, because an id is written for every event that is shown or counted. */
const halves: (string | undefined)[] = Array.from({ length: 65_536 });
const textOf = (half: number) => (halves[half] ??= half.toString(16).padStart(4, "0"));
const upper = (word: number) => textOf(word >>> 16);
const lower = (word: number) => textOf(word & 0xffff);

export function hexWord(word: number): string {
  return upper(word) + lower(word);
}

/** Returns the words as a lower-case UUID. */
export function logIdOf([a, b, c, d]: Draft["id"]): string {
  return `${hexWord(a)}-${upper(b)}-${lower(b)}-${upper(c)}-${lower(c)}${hexWord(d)}`;
}

/** Compares by time, then logId. All lists use this order, forwards or backwards. */
export function compareDrafts(one: Pick<Draft, "at" | "id">, other: Pick<Draft, "at" | "id">): number {
  return (
    one.at - other.at ||
    one.id[0] - other.id[0] ||
    one.id[1] - other.id[1] ||
    one.id[2] - other.id[2] ||
    one.id[3] - other.id[3]
  );
}

const WORDS = "red wool summer garden kids sale oak light trail desk linen city".split(" ");

/** Draws one event of a story: the request, then what its rule says about it. `random` was reseeded with the event's key. */
export function drawRequest(
  context: DraftContext,
  key: EventKey,
  story: Story,
  /** `reseed` begins one request of the story: it seeds everything that its events share. */
  { actor, reseed, at }: { readonly actor: Actor; readonly reseed: () => void; readonly at: number },
): Draft {
  const { random, cast, zoneId } = context;
  const agent = cast.userAgents[actor.agent] ?? { text: "", ja4: "" };
  const [ruleId = "", variable = ""] = story.rules[key.slot % story.rules.length] ?? [];
  const draft = drawEvent(context, key, ruleById(ruleId), { at }, { actors: [actor] });
  reseed();
  const host = `www.zone${zoneId}.example.test`;
  const path = fillPath(random.pick(story.paths), random);
  const text = random.pick(story.texts);
  const [collection = "", name = ""] = variable.split(":");
  const cookie = collection === "REQUEST_COOKIES" ? `${name}=${text}` : "";
  const hasBody = story.method === "POST" && (collection === "ARGS" || collection === "FILES");
  const query = collection === "ARGS" && !hasBody ? `?${name}=${encodeURIComponent(text)}` : "";
  const body = hasBody ? `${name}=${encodeURIComponent(text)}` : null;
  return {
    ...draft,
    ua: story.agent ?? agent.text,
    ja4: agent.ja4,
    host,
    url: `https://${host}${path}${query}`,
    method: story.method,
    trigger: variable,
    match: collection === "REQUEST_FILENAME" ? path : text,
    body,
    contentType: hasBody ? (story.contentType ?? "application/x-www-form-urlencoded") : null,
    headers: drawHeaders(story, { random, host, cookie, ip: actor.ip }),
    requestId: [random.next(), random.next(), random.next(), random.next()],
  };
}

function fillPath(path: string, random: Random): string {
  const slug = `${random.pick(WORDS)}-${random.pick(WORDS)}-${random.pick(WORDS)}`;
  return path.replaceAll("{n}", String(1 + random.below(9_000))).replaceAll("{s}", slug);
}

/** Every address keeps its cookie and its token. */
function drawHeaders(
  { sender }: Story,
  { random, host, cookie, ip }: { random: Random; host: string; cookie: string; ip: string },
): { Name: string; Value: string }[] {
  const shares = SENDERS[sender];
  const secret = (hashText(ip) >>> 0).toString(16).padStart(8, "0");
  const cookies = [random.fraction() < shares.cookie ? `session=${secret}; lang=en` : "", cookie];
  const cookieText = cookies.filter((one) => one !== "").join("; ");
  const isOwn = random.fraction() < shares.referer;
  const hasToken = random.fraction() < shares.token;
  return [
    { Name: "Accept", Value: sender === "machine" ? "*/*" : "text/html,application/xhtml+xml,*/*;q=0.8" },
    ...(cookieText === "" ? [] : [{ Name: "Cookie", Value: cookieText }]),
    ...(isOwn ? [{ Name: "Referer", Value: `https://${host}/` }] : []),
    ...(hasToken ? [{ Name: "Authorization", Value: `Bearer ${secret}${secret}` }] : []),
  ];
}
