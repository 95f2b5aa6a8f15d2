/** One page of a list of our API. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}
