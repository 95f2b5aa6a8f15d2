import { type Client, crawler, JA4, server } from "../clients.ts";
import type { Dice } from "../dice.ts";
import { get, textFrom } from "../sites.ts";
import { by } from "../stage.ts";
import { PEOPLE } from "../texts.ts";
import { type CaseTruth, type Scene, type Situation, situation } from "./situation.ts";

/** A rule that stops a search engine matches a legitimate visitor, so a misfire is right as well. */
const CRAWLER: CaseTruth = { truth: "crawler", accept: ["crawler", "misfire"], page: "no" };

/** Reads many pages with a few addresses, as a crawler does. */
function crawl(
  { dice, start, pace, send }: Scene,
  clients: readonly Client[],
  minutes: number,
  perMinute: number,
  page: (dice: Dice) => ReturnType<typeof get>,
) {
  pace(start, minutes, perMinute, (at) => send(at, by(dice.pick(clients), page(dice))));
}

const several = (dice: Dice, name: Parameters<typeof crawler>[1], count: number) =>
  Array.from({ length: count }, () => crawler(dice, name));

export const CRAWLERS: readonly Situation[] = [
  situation("google-facets", CRAWLER, { kinds: ["shop"] }, (scene) =>
    crawl(scene, several(scene.dice, "google", 12), 300, 3, (dice) =>
      get(`/c/${dice.pick(["wool", "linen", "silk"])}`, "filter", textFrom("filter", dice)),
    ),
  ),
  situation("bing-search-pages", CRAWLER, { kinds: ["shop", "news"], paranoia: 2 }, (scene) =>
    crawl(scene, several(scene.dice, "bing", 9), 240, 3, (dice) =>
      get(scene.site.search, "q", PEOPLE.search(dice)),
    ),
  ),
  situation("apple-old-links", CRAWLER, { kinds: ["news", "forum"], paranoia: 2 }, (scene) =>
    crawl(scene, several(scene.dice, "apple", 5), 300, 2, (dice) => get("/out", "to", PEOPLE.link(dice))),
  ),
  situation("link-index", CRAWLER, { kinds: ["shop", "forum"], paranoia: 2 }, (scene) =>
    crawl(scene, several(scene.dice, "ahrefs", 14), 200, 5, (dice) =>
      get(`/t/${dice.below(9_999)}`, "sort", `price>=${dice.below(90)} or 'new'`),
    ),
  ),
  situation(
    "site-audit",
    { ...CRAWLER, accept: ["crawler", "misfire", "broken-client"] },
    { kinds: ["shop", "news"], paranoia: 2 },
    (scene) =>
      crawl(scene, several(scene.dice, "semrush", 2), 90, 12, (dice) =>
        get("/search", "q", PEOPLE.search(dice)),
      ),
  ),
  situation(
    "archive-crawler",
    { ...CRAWLER, accept: ["crawler", "misfire", "broken-client"], tell: "may" },
    { kinds: ["news", "forum"], paranoia: 2 },
    (scene) =>
      crawl(
        scene,
        [
          server(
            scene.dice,
            "Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)",
            JA4.python,
          ),
        ],
        240,
        4,
        (dice) => get("/out", "to", PEOPLE.link(dice)),
      ),
  ),
];
