import { insertRow } from '../request-log/rows.js';
import { awayFromMidnight } from '../support/away-from-midnight.js';
import {
  describeInBrowser,
  fitsWindow,
  goTo,
  openAfresh,
  openPage,
  seriousViolations,
  settled,
  signedIn,
} from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';

/** Where the pictures go that somebody looks at; none if it is not set. */
const PICTURES = process.env.POSTERN_PICTURES;

interface Key {
  id: string;
  team_id: string;
  key: string;
}

describeInBrowser('calls of unknown cost in the console', () => {
  const gateway = {} as ConsoleGateway;
  const keys: Record<string, Key> = {};
  const row = (team: string, columns: object) =>
    insertRow(gateway.database, new Date(), {
      ...{ key_id: keys[team]!.id, team_id: keys[team]!.team_id, cost_usd: '8', usage_final: true },
      ...columns,
    });
  const unknown = { cost_usd: null, usage_final: false, outcome: 'client_aborted' };
  const boundedCalls = async (team: string) => {
    for (const high of ['0.5', '1.44'])
      await row(team, { ...unknown, cost_low_usd: '0.1', cost_high_usd: high });
  };
  const team = async (name: string) => {
    await gateway.admin('POST', '/admin/v1/teams', { name });
    keys[name] = await gateway.admin<Key>('POST', '/admin/v1/keys', { team: name, name: 'ci' });
  };
  beforeAll(async () => {
    await awayFromMidnight('Europe/Berlin');
    Object.assign(gateway, await startConsoleGateway());
    for (const name of ['search', 'web', 'exact']) {
      await team(name);
      await row(name, {});
    }
    await boundedCalls('search');
    await row('web', { ...unknown, cost_low_usd: '0.3', cost_high_usd: null });
    await row('exact', { cost_usd: null, prompt_tokens: 5, completion_tokens: 1 });
  });
  afterAll(() => gateway.stop());

  const BOUNDED = '2 calls of unknown cost: between $0.20 and $1.94 more';
  const UNBOUNDED = '1 call of unknown cost: at least $0.30 more';
  const ALL = '3 calls of unknown cost: at least $0.50 more';
  const UNPRICED = '1 call without a price';

  it('are beside the cost, which leaves them out', async () => {
    const { page, done } = await signedIn(gateway.url, '/');
    await page.getByRole('region', { name: 'Cost', exact: true }).getByText(ALL).waitFor();
    await page.getByRole('region', { name: 'Cost', exact: true }).getByText('$24.00').waitFor();
    await page.getByRole('region', { name: 'Cost', exact: true }).getByText(UNPRICED).waitFor();

    await goTo(page, 'usage?by=team');
    await page.getByText(`Costs leave out ${ALL}. The provider may have billed`).waitFor();
    const usage = page.getByRole('table', { name: 'Usage by group' });
    const cells = async (name: string) =>
      (await usage.getByRole('row').filter({ hasText: name }).allInnerTexts()).join().replace(/\s+/g, ' ');
    await usage.getByRole('columnheader', { name: 'Unknown cost' }).waitFor();
    expect(await cells('search')).toContain('2 $0.20 to $1.94');
    expect(await cells('web')).toContain('1 at least $0.30');
    expect(await cells('exact')).not.toContain('least');
    expect(await cells('Total')).toContain('3 at least $0.50');

    for (const [path, title] of [
      ['teams', 'Teams'],
      ['keys', 'Keys'],
    ] as const) {
      await goTo(page, path);
      await page.getByRole('heading', { level: 1, name: title }).waitFor();
      await page.getByText(BOUNDED).waitFor();
      await page.getByText(UNBOUNDED).waitFor();
      await settled(page);
      expect(await page.getByText(/of unknown cost/).count()).toBe(2);
      const unpriced = page.getByRole('row').filter({ hasText: UNPRICED });
      expect(await unpriced.allInnerTexts()).toEqual([expect.stringContaining('exact')]);
    }
    for (const path of ['', 'usage?by=team', 'teams', 'keys']) {
      await openAfresh(page, path);
      await settled(page);
      expect(await seriousViolations(page)).toEqual([]);
      for (const width of [1280, 320]) {
        await page.setViewportSize({ width, height: 860 });
        await fitsWindow(page);
        const name = `-${path.replace(/\W+/g, '-')}`;
        if (PICTURES)
          await page.screenshot({ path: `${PICTURES}/unknown${name}-${width}.png`, fullPage: true });
      }
      await page.setViewportSize({ width: 1280, height: 860 });
    }
    await goTo(page, 'teams');
    await page.getByRole('row').filter({ hasText: 'exact' }).click();
    await page.getByRole('dialog', { name: 'exact' }).getByText(UNPRICED).waitFor();
    await done();
  });

  it('are beside the sums of the largest teams and of budgets, which leave them out', async () => {
    const usd = { usd: '100', period: 'month' };
    const patch = (team: string, budget: object) =>
      gateway.admin('PATCH', `/admin/v1/teams/${keys[team]!.team_id}`, { budgets: [{ ...usd, ...budget }] });
    await patch('exact', { unpriced: 'allow' });
    await patch('web', {});
    const { page, done } = await signedIn(gateway.url, '/');
    const ranked = page.getByRole('list', { name: 'Top teams' }).getByRole('listitem');
    await ranked.first().waitFor();
    await settled(page);
    const texts = (await ranked.allInnerTexts()).map((text) => text.replace(/\s+/g, ' ')).sort();
    expect(texts).toEqual([`exact $8.00 ${UNPRICED}`, `search $8.00 ${BOUNDED}`, `web $8.00 ${UNBOUNDED}`]);
    await settled(page);
    expect(await seriousViolations(page)).toEqual([]);
    await goTo(page, '?metric=calls');
    await ranked.getByText('3', { exact: true }).waitFor();
    expect((await ranked.allInnerTexts()).join()).not.toContain('cost');

    await goTo(page, 'limits');
    const row = (team: string) => page.getByRole('row').filter({ hasText: team });
    await row('web').waitFor();
    await settled(page);
    expect(await page.getByText('Without calls that have no price').count()).toBe(1);
    await row('exact').getByRole('link', { name: 'Without calls that have no price' }).click();
    const usage = page.getByRole('table', { name: 'Usage by group' });
    await usage.getByRole('columnheader', { name: 'No price' }).waitFor();
    expect(new URL(page.url()).searchParams.get('team')).toBe(keys.exact!.team_id);
    await done();
  });

  it('are found by the filter Usage, and the drawer of each says between what it cost', async () => {
    const cut = { cost_usd: null, usage_final: false, outcome: 'client_aborted' };
    const bounded = {
      prompt_tokens: 1_000,
      completion_tokens: 1,
      cost_low_usd: '0.001',
      cost_high_usd: '0.0015',
    };
    const calls = {
      bounded: await row('exact', { ...cut, model: 'cut-bounded', ...bounded }),
      unbounded: await row('exact', { ...cut, model: 'cut-unbounded', ...bounded, cost_high_usd: null }),
      silent: await row('exact', { ...cut, model: 'cut-silent', cost_low_usd: '0', cost_high_usd: '1.5' }),
      unpriced: await row('exact', { ...cut, model: 'cut-unpriced' }),
    };
    await row('exact', { model: 'read', prompt_tokens: 5 });
    const { page, done } = await signedIn(gateway.url, '/requests?range=1h');
    const table = page.getByRole('table', { name: 'Requests' });
    await table.getByText('read', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Add filter' }).click();
    await page.getByRole('combobox', { name: 'Field' }).click();
    await page.getByRole('option', { name: 'Usage', exact: true }).click();
    await page.getByRole('combobox', { name: 'Usage' }).click();
    await page.getByRole('option', { name: 'Not read to the end', exact: true }).click();
    await page.getByRole('button', { name: 'Add filter' }).last().click();
    await page.getByRole('button', { name: 'Remove filter Usage: Not read to the end' }).waitFor();
    expect(new URL(page.url()).searchParams.get('usage_final')).toBe('false');
    await table.getByText('read', { exact: true }).waitFor({ state: 'detached' });
    for (const name of Object.keys(calls)) await table.getByText(`cut-${name}`).waitFor();
    await settled(page);

    const words: Record<keyof typeof calls, string> = {
      bounded: 'Its usage was not read to the end. It cost between $0.001 and $0.0015.',
      unbounded: 'Its usage was not read to the end. It cost $0.001 at least.',
      silent: 'The provider reported no tokens. It cost between $0.00 and $1.50.',
      unpriced: 'The provider reported no tokens. What it cost is not known: the model has no price.',
    };
    for (const [name, text] of Object.entries(words)) {
      await goTo(page, `requests?range=1h&usage_final=false&id=${calls[name as keyof typeof calls]}`);
      const drawer = page.getByRole('dialog');
      await drawer.getByText(text, { exact: true }).waitFor();
      expect(await drawer.getByText('Its usage was not read').count()).toBe(name.includes('bounded') ? 1 : 0);
    }
    expect(await seriousViolations(page)).toEqual([]);
    await done();
  });

  it('are on the page for holders of a key', async () => {
    await team('holder');
    await boundedCalls('holder');
    const { page, done } = await openPage(gateway.url);
    await page.goto(`${gateway.url}/console/key`);
    await page.getByLabel('Gateway key').fill(keys.holder!.key);
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByRole('region', { name: 'Today' }).getByText(BOUNDED).waitFor();
    await page.getByRole('region', { name: 'This month' }).getByText(BOUNDED).waitFor();
    await done();
  });
});
