import { Logger } from '@nestjs/common';

// The warning comes once per process, and another file of this worker may have seen it: a copy of the module has not.
const ownCopy = '../../src/platform/client-address.js?own-copy';

it('reports a proxy nearby that is not trusted, once', async () => {
  const { ClientAddress } = (await import(ownCopy)) as typeof import('../../src/platform/client-address.js');
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
  const none = new ClientAddress([], 'full');
  const trusting = new ClientAddress(['127.0.0.0/8'], 'full');

  expect(none.of('127.0.0.1', undefined)).toBe('127.0.0.1');
  expect(none.of('203.0.113.9', '198.51.100.1')).toBe('203.0.113.9');
  expect(trusting.of('127.0.0.1', '198.51.100.1')).toBe('198.51.100.1');
  expect(warn).not.toHaveBeenCalled();

  expect(none.of('::ffff:10.1.2.3', '198.51.100.1')).toBe('10.1.2.3');
  expect(none.of('127.0.0.1', '198.51.100.1')).toBe('127.0.0.1');
  expect(warn.mock.calls.flat()).toEqual([expect.stringMatching(/^10\.1\.2\.3 sends .* TRUSTED_PROXIES/)]);
});
