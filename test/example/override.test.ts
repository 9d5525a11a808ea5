import { ProviderProbe } from '../../src/providers/provider-probe.js';
import { startGateway, type TestGateway } from '../../src/testing/index.js';

let postern: TestGateway;
beforeAll(async () => {
  const probe = { run: () => Promise.resolve({ ok: true, code: 'ok', message: 'A stub.' }) };
  postern = await startGateway({
    settings: { providerUrl: 'https://provider.example' },
    override: (builder) => builder.overrideProvider(ProviderProbe).useValue(probe),
  });
});
afterAll(() => postern.stop());

it('calls the stub, not the provider', async () => {
  const tested = await postern.admin('POST', '/providers/default/test');
  expect(tested).toEqual({ ok: true, code: 'ok', message: 'A stub.' });
});
