"""ONNX Runtime's case: the scores of LeNet, with inputs and outputs bound once."""
import lenet64
import numpy as np
import onnxruntime
from inputs import Missing
from onnx import TensorProto, helper, numpy_helper


def model():
    nodes, at = [], "x"
    for i, kernel in enumerate((5, 3)):
        nodes += [
            helper.make_node("Conv", [at, f"p{2 * i}", f"p{2 * i + 1}"], [f"c{i}"],
                             kernel_shape=[kernel, kernel]),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
            helper.make_node("MaxPool", [f"r{i}"], [f"m{i}"], kernel_shape=[2, 2], strides=[2, 2])
        ]
        at = f"m{i}"
    nodes.append(helper.make_node("Flatten", [at], ["f"]))
    at = "f"
    for i in (2, 3, 4):
        nodes.append(
            helper.make_node("Gemm", [at, f"p{2 * i}", f"p{2 * i + 1}"], [f"d{i}"], transB=1))
        at = f"d{i}"
        if i < 4:
            nodes.append(helper.make_node("Relu", [at], [f"a{i}"]))
            at = f"a{i}"
    kept = [numpy_helper.from_array(w, f"p{i}") for i, w in enumerate(lenet64.weights())]
    graph = helper.make_graph(
        nodes, "lenet", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 28, 28])],
        [helper.make_tensor_value_info(at, TensorProto.FLOAT, ["n", 10])], kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), at


def cases(threads):
    def case(op, a, _form):
        if op != "lenet_infer":
            raise Missing(op)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        made, output = model()
        session = onnxruntime.InferenceSession(made.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        out = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((a["batch"], 10), np.float32))
        binding = session.io_binding()
        binding.bind_ortvalue_input(
            "x", onnxruntime.OrtValue.ortvalue_from_numpy(lenet64.batch(a["batch"])[0]))
        binding.bind_ortvalue_output(output, out)

        def infer():
            session.run_with_iobinding(binding)
            return out
        return infer
    return case, lambda y: np.ascontiguousarray(y.numpy(), np.float32)
