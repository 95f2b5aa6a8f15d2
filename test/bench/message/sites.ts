import type { Dice } from "./dice.ts";
import { FORM, type Request } from "./match-request.ts";
import { PEOPLE, samplesOf, type Text, vary, words } from "./texts.ts";

export type SiteKind = "shop" | "news" | "forum" | "api" | "portal";
type Draft = Omit<Request, "client">;

/** What visitors of a kind of site send now and then; a part of it matches rules. */
export interface Site {
  readonly host: string;
  /** Pages that visitors read. */
  readonly pages: (dice: Dice) => string;
  readonly login: string;
  readonly search: string;
  /** The requests with texts, each with its weight. */
  readonly visits: readonly (readonly [(dice: Dice) => Draft, number])[];
  /** The hours of its visitors: evenings, or office hours. */
  readonly isOffice: boolean;
  readonly methods: RegExp;
}

const slug = (dice: Dice) => words(dice, 2).replaceAll(" ", "-");
const sample = (source: string) => {
  const all = samplesOf(source);
  return (dice: Dice): Text => dice.pick(all);
};
const TEXTS = {
  comment: sample("comment"),
  support: sample("support"),
  markdown: sample("markdown"),
  richtext: sample("richtext"),
  filter: sample("filter"),
  cart: sample("cookie"),
  link: sample("campaign"),
  login: sample("login"),
  upload: sample("upload"),
  search: sample("search"),
} as const;

export const textFrom = (name: keyof typeof TEXTS, dice: Dice): Text => TEXTS[name](dice);

/** Returns a form that is sent, with one text. */
export const post = (path: string, field: string, text: Text, type = FORM): Draft => ({
  method: "POST",
  path,
  body: { type, parts: [[field, text]] },
});

/** Returns a page that is read, with one parameter. */
export const get = (path: string, field?: string, text?: Text): Draft => ({
  method: "GET",
  path,
  ...(field === undefined || text === undefined ? {} : { query: [[field, text]] }),
});

export const upload = (path: string, name: Text): Draft => ({
  method: "POST",
  path,
  body: { type: "multipart/form-data; boundary=----WebKitFormBoundaryk7", parts: [["file", name]] },
});

const searching =
  (path: string) =>
  (dice: Dice): Draft =>
    get(
      path,
      "q",
      dice.chance(0.3) ? TEXTS.search(dice) : dice.chance(0.5) ? PEOPLE.search(dice) : words(dice, 2),
    );
const signIn =
  (path: string) =>
  (dice: Dice): Draft =>
    post(path, "password", dice.chance(0.3) ? TEXTS.login(dice) : PEOPLE.password(dice));

type Kind = Omit<Site, "host">;

const SHOP: Kind = {
  pages: (dice) => `/${dice.pick(["p", "c", "brand"])}/${slug(dice)}`,
  login: "/account/login",
  search: "/search",
  visits: [
    [searching("/search"), 5],
    [signIn("/account/login"), 2],
    [(dice) => post(`/p/${dice.whole(1, 400)}/reviews`, "text", vary(dice, TEXTS.comment(dice))), 3],
    [(dice) => get(`/c/${slug(dice)}`, "filter", TEXTS.filter(dice)), 2],
    [(dice) => get("/l/offer", "url", TEXTS.link(dice)), 1],
    [(dice) => ({ ...get("/cart"), cookies: [["cart", TEXTS.cart(dice)]] }), 1],
  ],
  isOffice: false,
  methods: /^(?:GET|HEAD|POST|OPTIONS)$/,
};

const KINDS: Readonly<Record<SiteKind, Kind>> = {
  shop: SHOP,
  news: {
    ...SHOP,
    pages: (dice) => `/${dice.pick(["politics", "sport", "culture"])}/${slug(dice)}-${dice.below(9_000)}`,
    login: "/wp-login.php",
    search: "/suche",
    visits: [
      [searching("/suche"), 3],
      [(dice) => post(`/article/${dice.whole(1, 900)}/comments`, "comment", PEOPLE.quoted(dice)), 4],
      [(dice) => post("/wp-admin/post.php", "content", TEXTS.richtext(dice)), 2],
      [(dice) => get("/out", "to", PEOPLE.link(dice)), 2],
    ],
  },
  forum: {
    ...SHOP,
    pages: (dice) => `/t/${slug(dice)}/${dice.below(9_000)}`,
    login: "/session",
    visits: [
      [
        (dice) =>
          post("/posts", "raw", vary(dice, dice.chance(0.6) ? TEXTS.markdown(dice) : PEOPLE.code(dice))),
        5,
      ],
      [searching("/search"), 3],
      [signIn("/session"), 1],
      [(dice) => upload("/uploads.json", TEXTS.upload(dice)), 1],
    ],
  },
  api: {
    ...SHOP,
    pages: (dice) => `/v2/${dice.pick(["items", "users", "orders"])}/${dice.below(90_000)}`,
    login: "/v2/token",
    search: "/v2/search",
    visits: [
      [searching("/v2/search"), 3],
      [(dice) => post("/graphql", "query", PEOPLE.graphql(dice), "application/json"), 3],
      [
        (dice) => post(`/v2/items/${dice.whole(1, 9_999)}`, "note", PEOPLE.quoted(dice), "application/json"),
        3,
      ],
      [signIn("/v2/token"), 1],
    ],
    methods: /^(?:GET|HEAD|POST|OPTIONS|PUT|PATCH|DELETE)$/,
  },
  portal: {
    ...SHOP,
    pages: (dice) => `/app/${dice.pick(["invoices", "staff", "stock"])}/${dice.below(9_000)}`,
    login: "/sso/login",
    search: "/app/search",
    visits: [
      [(dice) => post("/app/tickets", "message", vary(dice, TEXTS.support(dice))), 4],
      [(dice) => upload(`/app/documents/${dice.whole(1, 900)}`, TEXTS.upload(dice)), 2],
      [(dice) => get("/app/report", "filter", TEXTS.filter(dice)), 2],
      [signIn("/sso/login"), 2],
    ],
    isOffice: true,
  },
};

/** Returns the site of a zone. */
export const siteOf = (kind: SiteKind, host: string): Site => ({ ...KINDS[kind], host });
