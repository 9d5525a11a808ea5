// The stand-in provider for plain calls: nginx, the cheapest server there is, or our own where it is missing.
import { nginxProgram } from '../contenders/nginx.mjs';
import { startNginxProvider } from './nginx.mjs';
import { startNodeProvider } from './node.mjs';

export function startProvider(workplace) {
  const program = nginxProgram();
  return program === null ? startNodeProvider(workplace) : startNginxProvider(workplace, program);
}
