import { hashText } from "#emulator/traffic/random.ts";
import type { Dice } from "../dice.ts";
import type { Request } from "../match-request.ts";
import type { Site } from "../sites.ts";
import type { ZoneWish } from "../zones.ts";

/** What a case is. `nothing`: everyday traffic, about which no message is due. */
export const TRUTHS = ["attack", "scanner", "misfire", "broken-client", "crawler", "nothing"] as const;
type Truth = (typeof TRUTHS)[number];

/** One cause within a situation. */
export interface CaseTruth {
  readonly truth: Truth;
  /** Left out: the truth; attack and scanner stand for each other. */
  readonly accept?: readonly (Truth | "unclear")[];
  /** `may`: a message is neither missed nor wrong. Left out: must, if enough of it is drawn. */
  readonly tell?: "may";
  /** Whether severity error or critical is wrong. Left out: may page. */
  readonly page?: "no";
  /** This case is a second wave of the situation's first case. */
  readonly isWave?: true;
}

/** What a situation sends with. `of` names the case; left out: the first. */
export interface Scene {
  readonly dice: Dice;
  readonly site: Site;
  readonly start: number;
  readonly send: (at: number, request: Request, of?: string) => void;
  /** As `send`, and who is stopped tries again. */
  readonly visit: (at: number, request: Request, of?: string) => void;
  readonly pace: (
    from: number,
    minutes: number,
    perMinute: number,
    act: (at: number, index: number) => void,
  ) => void;
}

export interface Situation {
  readonly name: string;
  readonly cases: Readonly<Record<string, CaseTruth>>;
  readonly zone?: ZoneWish;
  readonly play: (scene: Scene) => void;
}

type Play = Situation["play"];

export const situation = (name: string, truth: CaseTruth, zone: ZoneWish, play: Play): Situation => ({
  name,
  cases: { main: truth },
  zone,
  play,
});

export const MISFIRE: CaseTruth = { truth: "misfire" };
export const ATTACK: CaseTruth = { truth: "attack" };
export const SCAN: CaseTruth = { truth: "scanner" };

export const HALVES = ["fitted", "other"] as const;
export type Half = (typeof HALVES)[number];

/** Chosen so that each half has as many situations of each truth. It was chosen before any method was measured. */
const SALT = 283;

/** Returns the half of a situation, by its name alone: a method is fitted on the one and judged by the other. */
export const halfOf = (name: string): Half => (hashText(`${SALT}/${name}`) % 2 === 0 ? "fitted" : "other");
