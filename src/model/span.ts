/** Half-open: `from` belongs to it, `to` does not. Epoch ms. */
export interface Span {
  readonly from: number;
  readonly to: number;
}
