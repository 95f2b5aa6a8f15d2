import type { Dice } from "./dice.ts";

/** Who sends a request: an address with a client program. */
export interface Client {
  readonly ip: string;
  readonly asn: string;
  readonly country: string;
  readonly ua: string;
  readonly ja4: string;
  /** A browser tries again and passes a challenge; a program does neither. */
  readonly isBrowser: boolean;
  readonly sendsAccept: boolean;
  /** The value of the site's session cookie; `null` for clients without cookies. */
  readonly session: string | null;
  readonly token?: string;
}

type Network = readonly [asn: string, country: string, prefix: string];

const HOMES: readonly Network[] = [
  ["3320", "DE", "84.157"],
  ["3209", "DE", "88.66"],
  ["6805", "DE", "77.4"],
  ["3215", "FR", "90.63"],
  ["12322", "FR", "82.64"],
  ["2856", "GB", "86.134"],
  ["5607", "GB", "90.198"],
  ["3269", "IT", "79.21"],
  ["12479", "ES", "90.171"],
  ["5617", "PL", "83.5"],
  ["8447", "AT", "91.113"],
  ["3303", "CH", "85.3"],
  ["1136", "NL", "86.85"],
  ["7922", "US", "73.112"],
  ["7018", "US", "99.34"],
  ["577", "CA", "70.48"],
];
const PHONES: readonly Network[] = [
  ["3320", "DE", "80.187"],
  ["20940", "FR", "37.170"],
  ["25135", "GB", "148.252"],
  ["21928", "US", "172.58"],
  ["30722", "IT", "5.91"],
];
const HOSTS: readonly Network[] = [
  ["16276", "FR", "51.77"],
  ["24940", "DE", "65.108"],
  ["14061", "US", "159.89"],
  ["63949", "US", "172.104"],
  ["202425", "NL", "80.82"],
  ["45102", "SG", "47.88"],
  ["9009", "RO", "185.225"],
  ["210644", "RU", "77.91"],
  ["396982", "US", "34.76"],
  ["16509", "IE", "54.171"],
  ["4134", "CN", "117.50"],
];
const BOTNET: readonly Network[] = [
  ["45899", "VN", "113.161"],
  ["7713", "ID", "36.81"],
  ["28573", "BR", "187.64"],
  ["9829", "IN", "117.197"],
  ["17974", "ID", "180.244"],
  ["8151", "MX", "187.190"],
  ["24560", "IN", "122.162"],
  ["9498", "IN", "182.74"],
  ["27699", "BR", "189.46"],
  ["12389", "RU", "95.71"],
  ["4766", "KR", "121.140"],
  ["9121", "TR", "78.186"],
  ["8452", "EG", "41.44"],
  ["36903", "MA", "105.155"],
];

const BROWSERS: readonly (readonly [ua: string, ja4: string])[] = [
  ...[138, 139, 140, 141].map(
    (version) =>
      [
        `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version}.0.0.0 Safari/537.36`,
        `t13d1516h2_8daaf6152771_${version}b0a5c2d1`,
      ] as const,
  ),
  ...[139, 141].map(
    (version) =>
      [
        `Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version}.0.0.0 Mobile Safari/537.36`,
        `t13d1516h2_8daaf6152771_${version}d8a213f9`,
      ] as const,
  ),
  ...["143.0", "142.0", "128.0"].map(
    (version) =>
      [
        `Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:${version}) Gecko/20100101 Firefox/${version}`,
        "t13d1717h2_5b57614c22b0_3cbfd9057e0d",
      ] as const,
  ),
  ...["18.5", "26.0"].map(
    (version) =>
      [
        `Mozilla/5.0 (iPhone; CPU iPhone OS ${version.replace(".", "_")} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/${version} Mobile/15E148 Safari/604.1`,
        "t13d2014h2_a09f3c656075_e42f34c56612",
      ] as const,
  ),
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
    "t13d2014h2_a09f3c656075_14788d8d241b",
  ],
];

/** The fingerprints of programs by their language. */
export const JA4 = {
  python: "t13d1812h1_85036bcba153_b26ce05bbdd6",
  go: "t13d1312h2_f57a46bbacb6_ab7e3b40a677",
  curl: "t13d3112h2_e8f1e7e78f70_375ca2c5e164",
  java: "t13d1714h1_5b57614c22b0_e7c285222651",
  ruby: "t13d5911h1_a33745022dd6_1f22a2ca17c4",
  perl: "t12d5908h1_e1ea8fb2b5ff_97f8aa674fd9",
  node: "t13d1613h1_46e7e9700bed_eca864cca44a",
  phone: "t13d1411h2_2dae41c691ec_d6e7b5a6c1b0",
  bot: "t13d1410h2_168bb377f8c8_a1e935682795",
} as const;

const addressIn = (dice: Dice, prefix: string) => `${prefix}.${dice.below(256)}.${dice.whole(1, 254)}`;

function addressOf(dice: Dice, [asn, country, prefix]: Network, ipv6 = 0) {
  const ip = dice.chance(ipv6)
    ? `2a0${dice.below(10)}:${asn.padStart(4, "0").slice(0, 4)}:${dice.hex(3)}1:${dice.hex(2)}10:${dice.hex(4)}:${dice.hex(4)}:${dice.hex(4)}:${dice.hex(4)}`
    : addressIn(dice, prefix);
  return { asn, country, ip };
}

const browserOf = (dice: Dice) => {
  const [ua, ja4] = dice.pick(BROWSERS);
  return { ua, ja4, isBrowser: true, sendsAccept: true, session: dice.hex(26) };
};

/** Returns a person at home or on the way. */
export const person = (dice: Dice): Client => ({
  ...addressOf(dice, dice.pick(dice.chance(0.75) ? HOMES : PHONES), 0.15),
  ...browserOf(dice),
});

/** Returns the people of an office: many browsers behind one address. */
export function office(dice: Dice, people: number): Client[] {
  const place = addressOf(dice, dice.pick(HOMES));
  return Array.from({ length: people }, () => ({ ...place, ...browserOf(dice) }));
}

/** Returns a phone with an app. */
export const phone = (dice: Dice, ua: string): Client => ({
  ...addressOf(dice, dice.pick(dice.chance(0.5) ? PHONES : HOMES)),
  ua,
  ja4: JA4.phone,
  isBrowser: false,
  sendsAccept: true,
  session: null,
  token: dice.hex(32),
});

/** Returns a server that belongs to the site or to one of its partners. */
export const server = (dice: Dice, ua: string, ja4: string = JA4.java): Client => ({
  ...addressOf(dice, dice.pick(HOSTS)),
  ua,
  ja4,
  isBrowser: false,
  sendsAccept: dice.chance(0.5),
  session: null,
  token: dice.hex(32),
});

/** Returns a tool on a rented server. */
export const tool = (dice: Dice, ua: string, ja4: string, sendsAccept = false): Client => ({
  ...addressOf(dice, dice.pick(HOSTS)),
  ua,
  ja4,
  isBrowser: false,
  sendsAccept,
  session: null,
});

/** Returns another network of the same operator: botnets are spread wide. */
const nearby = (dice: Dice, [asn, country, prefix]: Network): Network => {
  const [first, second] = prefix.split(".");
  return [asn, country, `${first}.${(Number(second) + dice.below(24)) % 256}`];
};

/** Returns a machine of a botnet, or a rented home address, that calls itself a browser. */
export const zombie = (dice: Dice, ja4: string, ua = dice.pick(BROWSERS)[0]): Client => ({
  ...addressOf(dice, nearby(dice, dice.pick(dice.chance(0.8) ? BOTNET : HOMES))),
  ua,
  ja4,
  isBrowser: false,
  sendsAccept: dice.chance(0.6),
  session: null,
});

/** The crawlers whose operators publish their networks. */
const CRAWLERS = {
  google: [
    "15169",
    "US",
    "66.249",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
  ],
  bing: ["8075", "US", "40.77", "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"],
  apple: [
    "714",
    "US",
    "17.241",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)",
  ],
  ahrefs: ["16276", "FR", "54.36", "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)"],
  semrush: [
    "209366",
    "CY",
    "185.191",
    "Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)",
  ],
} as const;

export function crawler(dice: Dice, name: keyof typeof CRAWLERS): Client {
  const [asn, country, prefix, ua] = CRAWLERS[name];
  const ip = `${prefix}.${name === "google" ? dice.whole(64, 79) : dice.whole(100, 171)}.${dice.whole(1, 254)}`;
  return { asn, country, ip, ua, ja4: JA4.bot, isBrowser: false, sendsAccept: true, session: null };
}
