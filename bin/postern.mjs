#!/usr/bin/env node
// The command of the package. A clone has scripts that build it first; what is installed is built.
import { existsSync } from 'node:fs';
import module from 'node:module';

const prepared = new URL('../scripts/postern.mjs', import.meta.url);
// Node 22 and newer.
module.enableCompileCache?.();
await import(existsSync(prepared) ? prepared.href : '../dist/src/cli/main.js');
