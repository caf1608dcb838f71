// A span of the timeline that is chosen by keys: places from 0 to 1.

export type Span = [number, number];

/** What a key makes of a span, `null` for the whole timeline; `undefined` for a key that means nothing here. */
export function moved(span: Span | null, key: string, shift: boolean): Span | null | undefined {
  const STEP = 0.04;
  const within = (place: number) => Math.min(1, Math.max(0, place));
  if (key === "Escape") return null;
  const way = key === "ArrowRight" || key === "PageUp" ? 1 : key === "ArrowLeft" || key === "PageDown" ? -1 : 0;
  const step = STEP * (key.startsWith("Page") ? 4 : 1) * way;
  if (way === 0 && key !== "Home" && key !== "End") return undefined;
  if (!span) return key === "ArrowLeft" || key === "End" || key === "PageDown" ? [0.8, 1] : [0, 0.2];
  const [from, to] = span;
  if (shift) {
    const end = key === "Home" ? from + STEP : key === "End" ? 1 : Math.max(from + STEP / 2, to + step);
    return [from, within(end)];
  }
  const wide = to - from;
  const begin = key === "Home" ? 0 : key === "End" ? 1 - wide : Math.min(1 - wide, Math.max(0, from + step));
  return [begin, begin + wide];
}
