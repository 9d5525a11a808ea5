/** When a tier of a price applies. */
export interface Condition {
  above: number;
  /** Seconds of the UTC day; null: all day. */
  between: readonly [from: number, to: number] | null;
  serviceTier: string | null;
  size: string | null;
  quality: string | null;
}

/** What a call says of itself that a tier may ask for. */
export interface Traits {
  readonly service_tier?: string;
  readonly size?: string;
  readonly quality?: string;
}

/** As a tier states it. */
interface StoredCondition {
  readonly above?: number;
  readonly between?: readonly [from: string, to: string];
  readonly service_tier?: string;
  readonly size?: string;
  readonly quality?: string;
}

export function conditionOf(stored: StoredCondition): Condition {
  const { above, between, service_tier: serviceTier, size, quality } = stored;
  return {
    above: above ?? -1,
    between: between === undefined ? null : [secondsOf(between[0]), secondsOf(between[1])],
    serviceTier: serviceTier ?? null,
    size: size ?? null,
    quality: quality ?? null,
  };
}

function secondsOf(time: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = time.split(':').map(Number);
  return hours * 3_600 + minutes * 60 + seconds;
}

export function applies(
  condition: Condition,
  promptTokens: number,
  startedAt: number,
  traits: Traits,
): boolean {
  if (promptTokens <= condition.above) return false;
  if (condition.serviceTier !== null && condition.serviceTier !== traits.service_tier) return false;
  if (condition.size !== null && condition.size !== traits.size) return false;
  if (condition.quality !== null && condition.quality !== traits.quality) return false;
  if (condition.between === null) return true;
  const [from, to] = condition.between;
  const second = (startedAt / 1_000) % 86_400;
  return from <= to ? second >= from && second < to : second >= from || second < to;
}
