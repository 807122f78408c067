import { render } from 'preact';
import { App } from './app.tsx';
import { ready } from './i18n/index.ts';
import { restoreTheme } from './theme.ts';
import './style/base.css';
import './style/app.css';

const root = document.getElementById('app');
const draw = () => root && render(<App />, root);
restoreTheme(draw);
void ready().then(draw);
