import { median, percentile, quarters, ratios, Schedule } from '../../bench/statistics.mjs';

describe('median', () => {
  it('is the middle one, or the mean of the two in the middle, of what is known', () => {
    expect(median([9, 1, 10])).toBe(9);
    expect(median([4, 1, 10, 2])).toBe(3);
    expect(median([null, 7, null])).toBe(7);
    expect(median([])).toBeNull();
  });
});

describe('percentile', () => {
  it('is the smallest value that so many are not above', () => {
    const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
    expect([0, 0.5, 0.99, 1].map((share) => percentile(hundred, share))).toEqual([1, 50, 99, 100]);
    expect(percentile([3], 0.99)).toBe(3);
    expect(percentile([], 0.5)).toBeNull();
  });

  it('orders by number, not by text', () => {
    expect(percentile([9, 10, 100], 0.5)).toBe(10);
  });
});

describe('ratios', () => {
  it('compares round with round and skips those where one is unknown', () => {
    expect(ratios([10, 40, 5, 6], [5, 10, 0, null])).toEqual([2, 4]);
  });
});

describe('quarters', () => {
  it('gives the medians of the first and of the last quarter', () => {
    expect(quarters([1, 2, 3, 0, 0, 0, 0, 0, 0, 7, 8, 9])).toEqual({ first: 2, last: 8 });
  });
});

describe('Schedule', () => {
  it('has calls due evenly, each given once', () => {
    const schedule = new Schedule(1_000, 500);
    expect(schedule.due(999)).toBe(0);
    expect(schedule.due(1_004)).toBe(3);
    expect([schedule.take(), schedule.take()]).toEqual([1_000, 1_002]);
    expect(schedule.due(1_004)).toBe(1);
  });

  // Coordinated omission: timed from when they could be sent, 49 of these 50 calls would look fast.
  it('counts the waiting of calls that a stall held back', () => {
    const schedule = new Schedule(0, 1_000);
    const stalledUntil = 50;
    const latencies: number[] = [];
    for (let left = schedule.due(49); left > 0; left--) latencies.push(stalledUntil + 1 - schedule.take());
    expect(latencies).toHaveLength(50);
    expect(percentile(latencies, 0.99)).toBe(51);
    expect(percentile(latencies, 0.5)).toBe(26);
  });
});
