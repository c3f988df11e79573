"""Models as ONNX graphs: of columns as they came, in double precision; onnx is imported only here, when asked for."""
