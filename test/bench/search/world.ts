import { createRandom, hashText, type Random } from "#emulator/traffic/random.ts";
import { RULES, type Rule } from "#emulator/traffic/rules.ts";

export interface Actor {
  readonly ip: string;
  readonly asn: string;
  readonly country: string;
  /** Position in the agents. */
  readonly agent: number;
  /** Positions in the rules: what this client tries, over and over. */
  readonly kit: readonly number[];
}

export interface World {
  /** Busiest first. */
  readonly rules: readonly Rule[];
  /** Running sums of the rules' shares; the last is 1. */
  readonly ruleShares: Float64Array;
  /** Busiest first. */
  readonly actors: readonly Actor[];
  readonly agents: readonly { readonly ua: string; readonly ja4: string }[];
}

const RULE_COUNT = 600;
const ACTOR_COUNT = 100_000;
const ASN_COUNT = 2_000;
const MAX_KIT = 12;
const IPV6_SHARE = 0.1;
const COUNTRIES =
  "US CN DE RU FR NL BR IN VN ID SG GB UA HK KR JP PL IR TR IT ES CA TH BG RO AR MX TW ZA EG BD PK PH MY CO SE CH FI AT CZ AU " +
  "HU CL PE EC VE GR PT BE DK NO IE LT LV EE SK SI HR RS BA MK AL MD BY KZ UZ GE AM AZ IL SA AE QA KW OM JO LB IQ SY YE " +
  "MA DZ TN LY SD ET KE TZ UG RW GH NG CI SN CM AO MZ ZM ZW BW NA MG MU NP LK MM KH LA MN BN PG FJ NZ UY PY BO CR PA GT HN " +
  "SV NI DO CU JM TT HT PR BS BB GY SR IS LU MT CY MC LI AD SM GL FO GI XK ME TM TJ KG AF BT MV TL";

/** The attackers and their targets: the same for a seed, whatever the number of events. */
export function createWorld(seed: string): World {
  const random = createRandom();
  random.reseed(hashText(seed), 0x73, 0x65, 0x61);
  const agents = makeAgents(random);
  const networks = makeNetworks(random);
  const rules = makeRules();
  const ruleShares = zipfSums(rules.length);
  const actors = Array.from({ length: ACTOR_COUNT }, () => {
    const kit = Array.from({ length: 1 + skewed(random, MAX_KIT, 2) }, () => drawRule(random, ruleShares));
    const { asn, country } = networks[skewed(random, networks.length, 3)] ?? { asn: "", country: "" };
    return { ip: address(random), asn, country, agent: skewed(random, agents.length, 2), kit };
  });
  return { rules, ruleShares, actors, agents };
}

/** A position below `count`; the larger the power, the likelier the first ones. */
export function skewed(random: Random, count: number, power: number): number {
  return Math.floor(random.fraction() ** power * count);
}

/** A position in the rules, by their shares. */
export function drawRule(random: Random, sums: Float64Array): number {
  const share = random.fraction();
  let [low, high] = [0, sums.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sums[middle] ?? 1) > share) high = middle;
    else low = middle + 1;
  }
  return low;
}

function makeRules(): Rule[] {
  return Array.from({ length: RULE_COUNT }, (_, index) => {
    const base = RULES[index % RULES.length] as Rule;
    const round = Math.floor(index / RULES.length);
    if (round === 0) return { ...base, blockShare: base.blockShare, logShare: base.logShare };
    return {
      ...base,
      ruleId: String(Number(base.ruleId) + round),
      message: `${base.message} ${round + 1}/${Math.ceil(RULE_COUNT / RULES.length)}`,
    };
  });
}

function zipfSums(count: number): Float64Array {
  const sums = new Float64Array(count);
  let sum = 0;
  for (let rank = 0; rank < count; rank++) sums[rank] = sum += 1 / (rank + 2) ** 1.05;
  return sums.map((value) => value / sum);
}

function makeNetworks(random: Random) {
  const countries = COUNTRIES.split(" ");
  return Array.from({ length: ASN_COUNT }, () => ({
    asn: String(1_000 + random.below(210_000)),
    country: countries[skewed(random, countries.length, 2.5)] ?? "",
  }));
}

function makeAgents(random: Random) {
  const systems = [
    "Windows NT 10.0; Win64; x64",
    "Macintosh; Intel Mac OS X 10_15_7",
    "X11; Linux x86_64",
    "Linux; Android 14",
  ];
  const browsers = systems.flatMap((system) =>
    Array.from(
      { length: 80 },
      (_, index) =>
        `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${70 + index}.0.0.0 Safari/537.36`,
    ),
  );
  const tools = [
    "curl/8.5.0",
    "python-requests/2.32.3",
    "Go-http-client/2.0",
    "sqlmap/1.8.4#stable",
    "zgrab/0.x",
    "",
  ];
  return [...tools, ...browsers].map((ua) => ({ ua, ja4: fingerprint(random) }));
}

function fingerprint(random: Random): string {
  const hex = () => random.next().toString(16).padStart(8, "0");
  return `t13d${10 + random.below(20)}${10 + random.below(8)}h2_${hex()}${hex().slice(0, 4)}_${hex()}${hex().slice(0, 4)}`;
}

function address(random: Random): string {
  if (random.fraction() < IPV6_SHARE) {
    const groups = Array.from({ length: 5 }, () => (random.below(65_535) + 1).toString(16));
    return `2a0${random.below(10)}:${groups.join(":")}::${(random.below(4_000) + 1).toString(16)}`;
  }
  return `${skewed(random, 200, 1.5) + 5}.${skewed(random, 256, 2)}.${random.below(256)}.${random.below(254) + 1}`;
}
