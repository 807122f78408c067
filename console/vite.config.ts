import { defineConfig } from 'vite';

// `npm run dev` shows the API of a running Portcullis: PORTCULLIS=http://127.0.0.1:9443
const target = process.env.PORTCULLIS ?? 'http://127.0.0.1:9443';

export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    // Inlined data would need exceptions in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
  },
  server: {
    host: '127.0.0.1',
    // The API takes changes from pages of its own origin only.
    proxy: { '/api': { target, changeOrigin: true, headers: { Origin: new URL(target).origin } } },
  },
});
