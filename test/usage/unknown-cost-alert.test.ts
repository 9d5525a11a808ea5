import { UnknownCostAlert } from '../../src/usage/unknown-cost-alert.service.js';
import { UsageRollup } from '../../src/usage/usage-rollup.service.js';
import { insertRow } from '../request-log/rows.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
  await gateway.database.query(
    `INSERT INTO webhook (id, shown_url, events, format, sealed)
     VALUES (gen_random_uuid(), 'https://example.com', '{cost.unknown}', 'standard', '\\x00')`,
  );
});
afterAll(() => gateway.stop());

async function calls(provider: string, final: number, unknown: number, columns: object = {}): Promise<void> {
  for (let i = 0; i < final + unknown; i++)
    await insertRow(gateway.database, new Date(), {
      provider,
      usage_final: i < final,
      ...(i >= final && { cost_low_usd: '0.1', cost_high_usd: '0.3', outcome: 'client_aborted', ...columns }),
    });
}

never(
  'announces a provider of which the cost of more than 5 % of the calls is unknown, once a day',
  async () => {
    await calls('often', 18, 2);
    await calls('seldom', 19, 1);
    // Of so few, a share says nothing.
    await calls('few', 1, 3);
    const alert = gateway.gateway.app.get(UnknownCostAlert);
    const events = () =>
      gateway.database.query<{ data: object }>(`SELECT data FROM webhook_event WHERE type = 'cost.unknown'`);
    const found = await eventually(async () => {
      await gateway.gateway.app.get(UsageRollup).run();
      await alert.run();
      const rows = await events();
      return rows.length > 0 && rows;
    });
    expect(found).toMatchObject([
      {
        data: {
          ...{ provider: 'often', calls: 20, unknown_calls: 2, unbounded_calls: 0 },
          ...{ low_usd: '0.200000000', high_usd: '0.600000000' },
        },
      },
    ]);
    await alert.run();
    expect(await events()).toHaveLength(1);
  },
);
