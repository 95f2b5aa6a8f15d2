/**
 * Thrown when another owner has taken the lease over, or the lease was given back, so that the caller must not
 * commit.
 */
export class FenceLostError extends Error {
  override readonly name = "FenceLostError";
  readonly code = "FENCE_LOST";
  readonly disposition = "give-up";

  constructor(leaseName: string, fence: number) {
    super(`fence ${fence} of lease ${leaseName} is no longer the current one`);
  }
}
