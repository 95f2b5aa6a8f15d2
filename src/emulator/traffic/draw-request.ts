import type { Actor } from "./actors.ts";
import { type Draft, type DraftContext, drawEvent, type EventKey } from "./draft.ts";
import { hashText, type Random } from "./random.ts";
import { ruleById } from "./rules.ts";
import { SENDERS, type Story } from "./stories.ts";

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
