import type { RecordedEvent } from "#alerts/rules/backtest/replay-verdicts.ts";
import { STORIES, type Story, type StoryName } from "#emulator/traffic/stories.ts";
import { classifyAction } from "#model/action-class.ts";
import type { VerdictClass } from "#model/kinds.ts";
import { readRequest } from "#model/request-facts.ts";
import { createDraw, type Draw } from "../sources/draw.ts";

/** A week of history, a week in which episodes begin, and the week after it. */
const [HISTORY_DAYS, DAYS] = [7, 21];
const START = Date.UTC(2026, 9, 5);
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const BOT = STORIES.crawler.agent ?? "";
const BROWSER = (version: number) =>
  `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/${version}.0.0.0 Safari/537.36`;
const TOOLS = ["curl/8.5.0", "python-requests/2.32.3", "Go-http-client/2.0", "sqlmap/1.8.4", "Nuclei"];
/** Rules that injections trigger beside their own, and that visitors trigger as well. */
const SHARED_RULES = ["942430", "942440", "942110", "941320", "942130", "942260"];

/** Everything that an event takes from its sender. `cookie` and `referer` are shares of its requests. */
interface Sender {
  readonly ip: string;
  readonly asn: string;
  readonly ja4: string;
  readonly ua: string;
  readonly cookie: number;
  readonly referer: number;
}

interface Episode {
  readonly kind: string;
  readonly truth: VerdictClass;
  readonly from: number;
}

interface WorldEvent extends RecordedEvent {
  readonly at: number;
  readonly logId: string;
  readonly method: string;
}

export interface World {
  readonly events: readonly WorldEvent[];
  readonly episodes: readonly Episode[];
}

/** The place in `episodes` of the episode that an event belongs to. */
export function episodeOf(logId: string): number {
  return Number.parseInt(logId, 10);
}

/** How much attackers know of the verdict; null for the usual mix of episodes. */
export type Level = 0 | 1 | 2 | 3 | 4 | 5 | null;

/** Draws three weeks of one zone. Nothing here reads the weights or the thresholds of verdicts. */
export function drawWorld(seed: number, index: number, level: Level = null): World {
  const draw = createDraw(seed * 6_151 + index * 130_363 + 29);
  const zone = createZone(draw);
  zone.everyday();
  const count = level === null ? draw.integer(12, 18) : 8;
  for (let i = 0; i < count; i += 1) {
    const from = START + (HISTORY_DAYS + draw.unit() * 7) * DAY;
    if (level === null) drawEpisode(zone, draw, from);
    else zone.attackOfLevel(level, from);
  }
  const end = START + DAYS * DAY;
  const events = zone.events.filter(({ at }) => at < end).sort((a, b) => a.at - b.at);
  return { events, episodes: zone.episodes };
}

type Zone = ReturnType<typeof createZone>;

function createZone(draw: Draw) {
  const shop = {
    cookie: draw.between(0.4, 0.95),
    referer: draw.between(0.45, 0.95),
    hasHeaders: draw.chance(0.92),
    peak: draw.between(0, DAY),
    swing: draw.between(0.3, 0.9),
    visitsPerDay: draw.logBetween(60, 900),
  };
  const events: WorldEvent[] = [];
  const episodes: Episode[] = [];
  const regulars: Sender[] = [];
  let addresses = 0;
  const newIp = (block: number) => {
    addresses += 1;
    return `${block + (addresses >> 16)}.${(addresses >> 8) & 255}.${addresses & 255}.${draw.integer(1, 254)}`;
  };
  const homeAsn = () => String(3_000 + draw.zipf(60, 1.1));
  const hostAsn = () => String(60_000 + draw.integer(0, 80));
  const commonJa4 = () => `t13d15${draw.zipf(25, 1.1)}h2_browser`;
  const toolJa4 = () => `t12d${draw.integer(10, 60)}h1_tool`;
  const visitor = (): Sender => {
    const { cookie, referer } = shop;
    const [asn, ja4, ua] = [homeAsn(), commonJa4(), BROWSER(118 + draw.zipf(20, 1))];
    return { ip: newIp(80), asn, ja4, ua, cookie, referer };
  };
  const someVisitor = () => {
    if (regulars.length > 50 && draw.chance(0.25)) return draw.pick(regulars);
    const one = visitor();
    if (regulars.length < 400) regulars.push(one);
    return one;
  };
  const tool = (): Sender => {
    return { ip: newIp(40), asn: hostAsn(), ja4: toolJa4(), ua: draw.pick(TOOLS), cookie: 0, referer: 0 };
  };
  const begin = (kind: string, truth: VerdictClass, from: number) => episodes.push({ kind, truth, from }) - 1;

  function fill(story: Story): string {
    const words = [
      "wool",
      "oak",
      "kids",
      "sale",
      "trail",
      "linen",
      "city",
      "desk",
      "lamp",
      "ski",
      "tea",
      "rug",
    ];
    const slug = `${draw.pick(words)}-${draw.pick(words)}-${draw.pick(words)}`;
    return draw
      .pick(story.paths)
      .replaceAll("{n}", String(draw.integer(1, 9_000)))
      .replaceAll("{s}", slug);
  }

  /** Adds the events of one request: most of its story's rules, and for an injection some that visitors trigger too. */
  function send(episode: number, at: number, sender: Sender, story: Story, fixed: Fixed = {}): void {
    const { path = fill(story), text = draw.pick(story.texts), extra = 0 } = fixed;
    const more = draw.chance(extra) ? [[draw.pick(SHARED_RULES), story.rules[0]?.[1] ?? ""] as const] : [];
    const [cookie, referer] = [draw.chance(sender.cookie), draw.chance(sender.referer)];
    for (const [i, [ruleId, key]] of [...story.rules, ...more].entries()) {
      if (i > 0 && i < story.rules.length && draw.chance(0.25)) continue;
      const [collection, name = ""] = key.split(":");
      const inQuery = collection === "ARGS" && story.method === "GET";
      const url = `https://www.shop.example${path}${inQuery ? `?${name}=${encodeURIComponent(text)}` : ""}`;
      const token = sender.cookie > 0 && (story.sender === "app" || story.sender === "partner");
      const Headers = [
        { Name: "Host", Value: "www.shop.example" },
        { Name: "User-Agent", Value: sender.ua },
        ...(cookie && shop.hasHeaders
          ? [{ Name: token ? "Authorization" : "Cookie", Value: "session=1" }]
          : []),
        ...(referer ? [{ Name: "Referer", Value: "https://www.shop.example/" }] : []),
      ];
      const TriggerMatch = { Key: key, Value: collection === "REQUEST_FILENAME" ? path : text };
      const log = { Url: url, RemoteIp: sender.ip, Headers, TriggerMatch };
      const record = JSON.stringify({ log: JSON.stringify(log), labels: { method: story.method } });
      const { ip, asn, ja4, ua } = sender;
      const request = readRequest(Buffer.from(record), { url, ua, ruleId }, "");
      const logId = `${episode}:${events.length}`;
      const { method } = story;
      const action = classifyAction(draw.chance(0.8) ? "block" : "log");
      events.push({ at: Math.floor(at) + i, logId, ruleId, ip, asn, ja4, ua, url, method, action, request });
    }
  }

  /** Adds requests with a daily rhythm, `perHour` on average. */
  function flow(
    episode: number,
    span: Span,
    perHour: number,
    story: Story,
    who: () => Sender,
    fixed?: () => Fixed,
  ) {
    for (let at = span.from; at < span.to; at += HOUR / 4) {
      const phase = ((at - shop.peak) / DAY) * 2 * Math.PI;
      const requests = draw.poisson((perHour / 4) * (1 + shop.swing * Math.cos(phase)));
      for (let i = 0; i < requests; i += 1)
        send(episode, at + draw.between(0, HOUR / 4), who(), story, fixed?.());
    }
  }

  /** What happens every day: rules that match visitors now and then, and probes. */
  function everyday(): void {
    const span = { from: START, to: START + DAYS * DAY };
    const names: StoryName[] = ["form", "search", "cookie", "upload", "api", "rich-text"];
    const usual = names.filter(() => draw.chance(0.6));
    for (const name of usual)
      flow(
        begin("everyday", "misfire", START),
        span,
        shop.visitsPerDay / 24 / usual.length,
        STORIES[name],
        someVisitor,
      );
    const probes = begin("everyday probe", "scanner", START);
    for (let at = span.from; at < span.to; at += draw.between(1, 9) * HOUR) {
      const one = tool();
      for (let i = draw.integer(1, 8); i > 0; i -= 1)
        send(probes, at + draw.between(0, 5 * MINUTE), one, STORIES.probe);
    }
  }

  /** Adds requests of a few or many clients on a story, without a rhythm. */
  function burst(
    episode: number,
    { from, to }: Span,
    count: number,
    story: Story | (() => Story),
    who: readonly Sender[],
    fixed?: Fixed,
  ) {
    for (let i = 0; i < count; i += 1) {
      const one = typeof story === "function" ? story() : story;
      send(episode, draw.between(from, to), draw.pick(who), one, fixed);
    }
  }

  /** One attack on one path. Each level adds to the one before. */
  function attackOfLevel(level: number, from: number): void {
    const minutes = draw.logBetween(20, 240);
    const story =
      level >= 5 ? STORIES.form : draw.pick([STORIES.exploit, STORIES.injection, STORIES.stuffing]);
    const texts =
      level >= 4 ? STORIES.stuffing.texts : draw.chance(0.8) ? STORIES["deep-scan"].texts : story.texts;
    const who = Array.from({ length: Math.round(draw.logBetween(3, 200)) }, (): Sender => {
      if (level >= 5 && regulars.length > 0) return draw.pick(regulars);
      const forged = level >= 3 ? { cookie: 0.8, referer: 0.8 } : { cookie: 0, referer: 0 };
      const network = level >= 2 ? { asn: homeAsn(), ja4: commonJa4() } : {};
      return { ...tool(), ...(level >= 1 ? { ua: BROWSER(130) } : {}), ...network, ...forged };
    });
    const perMinute = level >= 3 ? draw.logBetween(0.5, 4) : draw.logBetween(1, 20);
    const told = { ...story, texts };
    const span = { from, to: from + minutes * MINUTE };
    burst(begin(`level ${level}`, "attack", from), span, Math.max(25, perMinute * minutes), told, who, {
      extra: 0.3,
    });
  }

  return {
    draw,
    shop,
    events,
    episodes,
    begin,
    visitor,
    someVisitor,
    tool,
    newIp,
    homeAsn,
    commonJa4,
    flow,
    burst,
    send,
    fill,
    everyday,
    attackOfLevel,
  };
}

interface Fixed {
  readonly path?: string;
  readonly text?: string;
  readonly extra?: number;
}
interface Span {
  readonly from: number;
  readonly to: number;
}

const MISFIRES = [
  "form",
  "search",
  "rich-text",
  "cookie",
  "upload",
  "api",
  "partner",
  "back-office",
  "campaign",
] as const;

function drawEpisode(zone: Zone, draw: Draw, from: number): void {
  const { visitor, tool, begin, burst, send } = zone;
  const forMinutes = (minutes: number) => ({ from, to: from + minutes * MINUTE });
  const crowd = (size: number, make: () => Sender) => Array.from({ length: Math.round(size) }, make);
  /** A scan tries what many rules look for. */
  const withAnyRule = (story: Story) => () => {
    const [, key] = draw.pick(story.rules);
    const rare = [
      `/${draw.integer(1, 400)}.php`,
      `/app${draw.integer(1, 40)}/config.${draw.integer(1, 9)}.bak`,
    ];
    const paths = draw.chance(0.5) ? story.paths : rare;
    return { ...story, paths, rules: [[`93${draw.integer(1_000, 1_045)}`, key]] as const };
  };
  const isBrowser = draw.chance(0.5);
  const masked = (): Sender =>
    isBrowser ? { ...tool(), ua: BROWSER(draw.integer(125, 140)), ja4: zone.commonJa4() } : tool();
  const kinds = {
    misfire: () => drawMisfire(zone, draw, from),
    "broken-client": () => {
      const story: Story = STORIES[draw.pick(["repeat", "api", "form", "search"] as const)];
      const one = { ...visitor(), cookie: draw.chance(0.4) ? 0.95 : 0, referer: 0 };
      const fixed = { path: zone.fill(story), text: draw.pick(story.texts) };
      const [everyMs, minutes] = [draw.logBetween(3_000, 60_000), draw.logBetween(20, 600)];
      const episode = begin("broken client", "broken-client", from);
      for (let at = from; at < from + minutes * MINUTE; at += everyMs) send(episode, at, one, story, fixed);
    },
    crawler: () => {
      const asn = "15169";
      const bots = crowd(draw.integer(3, 20), () => ({ ...tool(), asn, ua: BOT, ja4: "t13d_bot" }));
      const minutes = draw.logBetween(30, 900);
      burst(
        begin("crawler", "crawler", from),
        forMinutes(minutes),
        minutes * draw.logBetween(0.4, 4),
        STORIES.crawler,
        bots,
      );
    },
    scanner: () => {
      const requests = draw.integer(25, 110);
      const span = forMinutes(draw.logBetween(1, 30));
      burst(begin("scanner", "scanner", from), span, requests, withAnyRule(STORIES.probe), [masked()]);
    },
    exploit: () => {
      const path = zone.fill(draw.pick([STORIES.exploit, STORIES.form]));
      const who = crowd(draw.integer(1, 8), masked);
      const fixed = { extra: 0.3, ...(draw.chance(0.5) ? { path } : {}) };
      burst(
        begin("exploit", "attack", from),
        forMinutes(draw.logBetween(10, 150)),
        draw.logBetween(30, 400),
        STORIES.exploit,
        who,
        fixed,
      );
    },
    botnet: () => {
      const who = crowd(
        draw.logBetween(50, 400),
        draw.chance(0.4) ? () => ({ ...masked(), asn: zone.homeAsn() }) : masked,
      );
      const story = { ...draw.pick([STORIES.injection, STORIES.exploit]), texts: STORIES["deep-scan"].texts };
      burst(
        begin("botnet", "attack", from),
        forMinutes(draw.logBetween(20, 240)),
        draw.logBetween(150, 1_500),
        story,
        who,
        { extra: 0.3 },
      );
    },
    stuffing: () => {
      const who = crowd(draw.logBetween(20, 300), masked);
      burst(
        begin("credential stuffing", "attack", from),
        forMinutes(draw.logBetween(10, 200)),
        draw.logBetween(100, 1_200),
        STORIES.stuffing,
        who,
      );
    },
    "deep-scan": () => {
      const requests = draw.logBetween(150, 900);
      burst(
        begin("deep scan", "attack", from),
        forMinutes(draw.logBetween(5, 120)),
        requests,
        withAnyRule(STORIES["deep-scan"]),
        [masked()],
        { extra: 0.3 },
      );
    },
  };
  const mix = [
    "misfire",
    "misfire",
    "misfire",
    "misfire",
    "broken-client",
    "broken-client",
    "crawler",
    "scanner",
    "scanner",
  ] as const;
  kinds[draw.pick([...mix, "exploit", "exploit", "botnet", "stuffing", "deep-scan"] as const)]();
}

function drawMisfire(zone: Zone, draw: Draw, from: number): void {
  const { visitor, someVisitor, begin, flow } = zone;
  const kind = draw.pick(MISFIRES);
  const episode = begin(`misfire: ${kind}`, "misfire", from);
  const always = { from, to: draw.chance(0.8) ? START + DAYS * DAY : from + draw.logBetween(8, 72) * HOUR };
  const few = (size: number, shares: Partial<Sender>) => {
    const who = Array.from({ length: size }, () => ({ ...visitor(), ...shares }));
    return () => draw.pick(who);
  };
  if (kind === "campaign")
    flow(
      episode,
      { from, to: from + draw.between(1, 6) * HOUR },
      draw.logBetween(60, 500),
      STORIES.campaign,
      () => ({ ...visitor(), cookie: 0.15, referer: 0 }),
    );
  else if (kind === "partner")
    flow(
      episode,
      always,
      draw.logBetween(30, 150),
      STORIES.partner,
      few(draw.integer(1, 4), { cookie: 1, referer: 0, ua: "python-requests/2.32.3", ja4: "t13d_partner" }),
    );
  else if (kind === "back-office")
    flow(
      episode,
      always,
      draw.logBetween(15, 60),
      STORIES["back-office"],
      few(draw.integer(3, 15), { cookie: 1, referer: 0.95 }),
    );
  else if (kind === "api")
    flow(episode, always, draw.logBetween(20, 120), STORIES.api, () => ({
      ...someVisitor(),
      cookie: 0.9,
      referer: 0,
      ja4: "t13d_app",
    }));
  else flow(episode, always, draw.logBetween(12, 100), STORIES[kind], someVisitor);
}
