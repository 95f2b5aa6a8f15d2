/** Another owner has taken over, or the lease was given back: what this one was about to commit must not be. */
export class FenceLostError extends Error {
  override readonly name = "FenceLostError";
  readonly code = "FENCE_LOST";
  readonly disposition = "give-up";

  constructor(leaseName: string, fence: number) {
    super(`fence ${fence} of lease ${leaseName} is no longer the current one`);
  }
}
