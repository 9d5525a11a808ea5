import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** Where `npm run dev` finds a running gateway. */
const gateway = process.env.POSTERN_URL ?? 'http://127.0.0.1:8080';
const proxy = Object.fromEntries(
  ['/admin', '/self', '/health', '/v1'].map((path) => [path, { target: gateway }]),
);

export default defineConfig({
  base: '/console/',
  plugins: [react(), precompress()],
  build: {
    target: 'es2022',
    // The content security policy allows scripts of this origin only, and no data: URLs for fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    chunkSizeWarningLimit: 700,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        chunkFileNames: ({ facadeModuleId }) => {
          const page = /\/pages\/(\w+)\/page\.tsx$/.exec(facadeModuleId ?? '')?.[1];
          return page === undefined ? 'assets/[name]-[hash].js' : `assets/page-${page}-[hash].js`;
        },
      },
    },
  },
  server: {
    port: 5173,
    strictPort: true,
    // The presets of providers, the client of the admin API and the page of errors are the gateway's own.
    fs: {
      allow: ['.', '../src/providers', '../src/client', '../docs/reference', '../node_modules/openapi-fetch'],
    },
    proxy,
  },
  preview: { port: 5174, strictPort: true, proxy },
});

/** Writes a .gz and a .br file beside every asset that gets smaller, for a server that serves them as they are. */
function precompress(): Plugin {
  let folder = '';
  return {
    name: 'precompress',
    apply: 'build',
    configResolved(config) {
      folder = join(config.root, config.build.outDir);
    },
    async writeBundle() {
      for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/\.(js|css|html|svg)$/.test(entry.name)) continue;
        const path = join(entry.parentPath, entry.name);
        const bytes = await readFile(path);
        const gz = await promisify(gzip)(bytes, { level: 9 });
        const br = await promisify(brotliCompress)(bytes, {
          params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
        });
        if (gz.length < bytes.length) await writeFile(`${path}.gz`, gz);
        if (br.length < bytes.length) await writeFile(`${path}.br`, br);
      }
    },
  };
}
