import { HOSTILE } from "./payloads.ts";
import { createRandom, hashText, type Random } from "./random.ts";

/** One client address with its properties. */
export interface Actor {
  readonly ip: string;
  readonly asn: string;
  readonly country: string;
  /** Position in `userAgents` of the value that most of this client's requests carry. */
  readonly agent: number;
}

interface UserAgent {
  readonly text: string;
  readonly ja4: string;
}

/** The attackers, which are the same for every zone of a seed. */
export interface Cast {
  readonly actors: readonly Actor[];
  readonly userAgents: readonly UserAgent[];
  /** Entries of `userAgents` from this position on are hostile or absurdly long. Earlier ones are ordinary. */
  readonly hostileAgentsFrom: number;
  /** The entry of `userAgents` of a common scanner. */
  readonly scannerAgent: number;
}

/** The first user agents are those of browsers. */
export const BROWSERS = 24;
const ACTORS = 4_000;
const IPV6_SHARE = 0.12;
const LONG_AGENT_CHARS = 8_000;

const NETWORKS: readonly (readonly [asn: string, countries: readonly string[]])[] = [
  ["16276", ["FR", "DE", "PL"]],
  ["24940", ["DE", "FI"]],
  ["14061", ["US", "NL", "SG", "IN"]],
  ["16509", ["US", "IE", "JP"]],
  ["4134", ["CN"]],
  ["45102", ["CN", "SG"]],
  ["12389", ["RU"]],
  ["28573", ["BR"]],
  ["7922", ["US"]],
  ["9829", ["IN"]],
  ["4766", ["KR"]],
  ["3320", ["DE"]],
  ["60781", ["NL"]],
  ["208046", ["UA", "NL"]],
  ["7713", ["ID"]],
  ["45899", ["VN"]],
  ["36351", ["US", "HK"]],
  ["20473", ["US", "JP", "AU"]],
];

const FIRST_OCTETS = [
  5, 23, 31, 45, 61, 77, 80, 91, 103, 116, 139, 141, 159, 178, 185, 193, 194, 202, 212, 220,
];

function address(random: Random): string {
  if (random.fraction() < IPV6_SHARE) {
    const groups = Array.from({ length: 5 }, () => random.below(65_535) + 1);
    return `2a0${random.below(10)}:${groups.map((group) => group.toString(16)).join(":")}::${(random.below(4_000) + 1).toString(16)}`;
  }
  return `${random.pick(FIRST_OCTETS)}.${random.below(256)}.${random.below(256)}.${random.below(254) + 1}`;
}

function fingerprint(random: Random): string {
  const hex = (digits: number) => random.next().toString(16).padStart(8, "0").slice(0, digits);
  const version = random.pick(["t13d", "t12d", "q13d"]);
  const ciphers = String(random.below(20) + 5).padStart(2, "0");
  const extensions = String(random.below(14) + 4).padStart(2, "0");
  return `${version}${ciphers}${extensions}${random.pick(["h2", "h1", "00"])}_${hex(8)}${hex(4)}_${hex(8)}${hex(4)}`;
}

function agentTexts(): { ordinary: string[]; hostile: string[]; scanner: number } {
  const browsers = Array.from({ length: BROWSERS }, (_, index) => {
    const version = 118 + index;
    return `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version}.0.0.0 Safari/537.36`;
  });
  const tools = [
    "curl/8.5.0",
    "python-requests/2.32.3",
    "Go-http-client/2.0",
    "sqlmap/1.8.4#stable (https://sqlmap.org)",
  ];
  const scanners = [
    "Nuclei - Open-source project (github.com/projectdiscovery/nuclei)",
    "Mozilla/5.00 (Nikto/2.5.0)",
    "zgrab/0.x",
    "",
  ];
  const long = `Mozilla/5.0 ${"(compatible; padding) ".repeat(LONG_AGENT_CHARS / 22)}`;
  const ordinary = [...browsers, ...tools, ...scanners];
  return { ordinary, hostile: [...HOSTILE, long], scanner: ordinary.length - scanners.length };
}

export function createCast(seed: string): Cast {
  const random = createRandom();
  random.reseed(hashText(seed), 0x6361, 0x7374, 1);
  const { ordinary, hostile, scanner } = agentTexts();
  const userAgents = [...ordinary, ...hostile].map((text) => ({ text, ja4: fingerprint(random) }));
  const actors = Array.from({ length: ACTORS }, () => {
    const [asn, countries] = random.pick(NETWORKS);
    return {
      ip: address(random),
      asn,
      country: random.pick(countries),
      agent: random.below(ordinary.length),
    };
  });
  return { actors, userAgents, hostileAgentsFrom: ordinary.length, scannerAgent: scanner };
}
