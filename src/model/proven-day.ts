/** A UTC day whose hours were proven anew, because the platform's metrics counted more events than are stored. */
export interface ProvenDay {
  /** Time at which the latest proof began, epoch ms. */
  readonly at: number;
  /** Number of proofs. */
  readonly proofs: number;
  /** The platform's counts at that time that exceeded the stored ones, by rule. */
  readonly counts: Readonly<Record<string, number>>;
}
