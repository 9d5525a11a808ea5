import { identityTokenFiles } from '../../src/config/identity-token-files.js';

it('reads names, files and the host of each', () => {
  expect(
    identityTokenFiles(
      'openai=/run/a b@c/token@https://auth.openai.com, aws=/t@https://sts.eu-central-1.amazonaws.com:443',
    ),
  ).toEqual([
    { name: 'openai', path: '/run/a b@c/token', origin: 'https://auth.openai.com' },
    { name: 'aws', path: '/t', origin: 'https://sts.eu-central-1.amazonaws.com' },
  ]);
});

it.each([
  ['no host', 'a=/token'],
  ['no name', '/token@https://h.example'],
  ['a relative path', 'a=token@https://h.example'],
  ['plain HTTP', 'a=/token@http://h.example'],
  ['plain HTTP to this machine', 'a=/token@http://127.0.0.1'],
  ['a path after the host', 'a=/token@https://h.example/x'],
  ['a query after the host', 'a=/token@https://h.example?x'],
  ['user information', 'a=/token@https://u:p@h.example'],
  ['a name twice', 'a=/one@https://h.example,a=/two@https://h.example'],
  ['nothing between commas', 'a=/one@https://h.example,'],
  ['a name that is none', 'A b=/one@https://h.example'],
])('rejects %s', (_, value) => {
  expect(identityTokenFiles(value)).toBeUndefined();
});
