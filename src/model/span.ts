/** A half-open span: includes `from`, excludes `to`. Epoch ms. */
export interface Span {
  readonly from: number;
  readonly to: number;
}
