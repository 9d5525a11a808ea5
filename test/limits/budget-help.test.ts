import { type LimitedGateway, startLimited } from './limited-gateway.js';
import { never } from '../support/never.js';

const HELP = 'Ask llm-budgets@example.com for more.';

let limited: LimitedGateway;
beforeAll(async () => {
  limited = await startLimited({ BUDGET_HELP: HELP });
});
afterAll(() => limited.stop());

never.each(['/v1/chat/completions', '/v1/messages'])(
  'whoever a budget rejects on %s reads whom to ask',
  async (path) => {
    const key = await limited.createKey({ budgets: [{ usd: '0', period: 'total' }] });
    const { status, error } = await limited.send(key, { model: 'm', messages: [] }, path);
    expect([status, error.message]).toEqual([
      402,
      `The total budget of this gateway key is spent: $0.00 of $0.00. It does not reset by itself. ${HELP}`,
    ]);
  },
);

it('a rate, which resets within a minute, does not say it', async () => {
  const key = await limited.createKey({ limits: { requests_per_minute: 1 } });
  const call = () => limited.send(key, { model: 'm', max_tokens: 10, messages: [] });
  expect((await call()).status).toBe(200);
  const { status, error } = await call();
  expect(status).toBe(429);
  expect(error.message).not.toContain(HELP);
});
