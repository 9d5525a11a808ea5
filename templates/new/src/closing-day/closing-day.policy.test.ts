import assert from 'node:assert/strict';
import { it, mock } from 'node:test';
import type { PolicyCall } from 'postern';
import { ClosingDayPolicy } from './closing-day.policy.js';

const call = { modelSource: 'body', requireModel: () => 'gpt-5-pro' } as PolicyCall;

for (const [day, date, isRejected] of [
  ['Sunday', '2026-11-22', true],
  ['Monday', '2026-11-23', false],
] as const) {
  it(`${isRejected ? 'rejects' : 'admits'} large models on ${day}`, () => {
    mock.timers.enable({ apis: ['Date'], now: new Date(date) });
    const admit = () => new ClosingDayPolicy().admit(call);
    if (isRejected) assert.throws(admit, /not available on Sundays/);
    else admit();
    mock.timers.reset();
  });
}
